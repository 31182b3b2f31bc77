"""How a report that is watched is shown: redrawn on a terminal, else a line for each change."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group
from rich.live import Live

from kullback.dumps.errors import printable
from kullback.following.follower import UNSETTLED
from kullback.following.reading import UNENDED
from kullback.reporting.screen import one_line, screen, waiting_lines
from kullback.reporting.words import headline

if TYPE_CHECKING:
    from kullback.following.follower import Follower, Look

HAPPENED = 3  # of the things that became of files, the last ones that stay on the screen


def shown(*, once: bool) -> Redrawn | Lines:
    """What suits the output."""
    return Redrawn() if sys.stdout.isatty() and not once else Lines(once=once)


def why_nothing(follower: Follower, look: Look) -> str:
    """Why there is no report yet, in a sentence."""
    progress, place = follower.progress, follower.place
    if progress.damaged:
        return f"no row can be used, of {progress.rows}; the first: {progress.damaged[0]}"
    if look.waiting:
        name, why = next(iter(look.waiting.items()))
        more = f" (and {len(look.waiting) - 1} more files wait)" * (len(look.waiting) > 1)
        return f"{name}: {why}{more}"
    if progress.files:
        return f"{place} holds no row yet"
    return f"{place} holds no dump yet" if place.is_dir() else f"{place} is not there yet"


class Redrawn:
    """One screen, redrawn in place after each look."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self.nothing = self.headline = ""
        self._live = Live(console=self.console, auto_refresh=False, vertical_overflow="crop")
        self._happened: list[str] = []
        self._drawn: tuple[dict[str, Any] | None, list[str]] = None, []

    def __enter__(self) -> Redrawn:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, report: dict[str, Any] | None, look: Look, follower: Follower) -> None:
        """Draw the report and what is waited for."""
        now = time.strftime("%H:%M:%S")
        self._happened = [*self._happened, *(f"{now} {one}" for one in look.said)][-HAPPENED:]
        notes = [*self._happened, *waiting_lines(look.waiting)]
        self.headline = headline(report) if report else ""
        self.nothing = "" if report else why_nothing(follower, look)
        if not (report or look.waiting):
            notes.append(f"Waits: {self.nothing}")
        self._drawn = report, notes
        self._draw(
            f"Looked at {time.strftime('%H:%M:%S')}, every {follower.every:g} s; Ctrl-C ends"
        )

    def reading(self, rows: int) -> None:
        """Say that there is more to read before the report is drawn anew."""
        self._draw(f"Reading: {rows} rows so far")

    def _draw(self, foot: str) -> None:
        report, notes = self._drawn
        self._live.update(Group(*screen(report, notes, foot, self.console)), refresh=True)


class Lines:
    """A line for each change, without the time, so that two outputs can be compared.

    Args:
        once: There is one look alone: whatever waits is said.
    """

    def __init__(self, *, once: bool) -> None:
        self.once = once
        self.nothing = self.headline = ""
        self._last = ""
        self._codes: set[str] = set()
        self._waited: dict[str, str] = {}
        self._told: set[tuple[str, str]] = set()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, report: dict[str, Any] | None, look: Look, follower: Follower) -> None:
        """Print what is new."""
        for said in look.said:
            self._print(said)
        self.nothing = "" if report else why_nothing(follower, look)
        if report is None and not look.waiting and not self.once:
            self._print(f"Waits: {self.nothing}")
        if report is not None:
            self.headline = headline(report)
            self._print(one_line(report, self._codes))
            self._codes = {one["code"] for one in report["findings"]}
            self._last = one_line(report, self._codes)
        for waits in look.waiting.items():
            # What is being written is no news, and whether a look meets it is chance.
            usual = waits[1] in (UNSETTLED, UNENDED)
            lasting = self.once or (not usual and self._waited.get(waits[0]) == waits[1])
            if lasting and waits not in self._told and (report or not self.once):
                self._told.add(waits)
                click.echo(printable(waiting_lines(dict([waits]))[0]))
        self._told &= set(look.waiting.items())
        self._waited = look.waiting

    def reading(self, rows: int) -> None:
        """Nothing: a line is a change of the report."""

    def _print(self, line: str) -> None:
        if line != self._last:
            click.echo(printable(line))
            self._last = line
