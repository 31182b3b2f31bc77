"""``kullback watch``: follow a run that grows, say what it shows as it comes."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kullback import __version__
from kullback.cli import options
from kullback.cli.failing import fail, grave_findings, is_grave, one_sentence, require_place
from kullback.cli.reading import axes_of, columns_by_role, opened

if TYPE_CHECKING:
    from kullback.cli.showing import Lines, Redrawn
    from kullback.following.follower import Follower
    from kullback.following.progress import Progress
    from kullback.following.stamps import Stamp

PAUSE = 10.0  # seconds of a long reading after which what was counted is kept


@click.command(short_help="Follow a run as it grows.")
@click.argument("place", metavar="DIR|FILE")
@click.option(
    "--every",
    type=click.FloatRange(min=0.05),
    default=10.0,
    metavar="SECONDS",
    help="The time between two looks; 10 if not given.",
)
@click.option("--once", is_flag=True, help="Look once and exit, for cron and CI.")
@options.questions
@options.maps
@options.by
@click.option("--html", metavar="FILE", help="Keep the page in this file up to date.")
@click.option("--json", metavar="FILE", help="Keep the JSON in this file up to date.")
@click.option(
    "--state",
    metavar="FILE",
    help="Where to keep what was counted; else a hidden file beside the page or DIR|FILE.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "error"]),
    help="Exit with 1 as soon as a finding is this severe.",
)
@options.jobs
def watch(
    place: str, every: float, once: bool, fail_on: str | None, jobs: int, **rest: Any
) -> None:
    """Follow a training run: report every KL of the rows that are there, again and again.

    DIR is a folder to which dumps are added, one file per step for example; FILE is one dump,
    JSON lines that grow for example. Neither has to be there yet.

    Lines that are added to JSON lines are counted as they come, except a last line without its
    end. Any other file (compressed lines, one row per token, Parquet, Arrow, NPZ) is counted when
    it did not change from one look to the next, or since before --every. Each row is counted
    once. If a file that was counted changes in any other way, all is counted from the start;
    one that is deleted stays counted. The output says so.

    What was counted is kept in a file, so that the next start with the same questions goes on
    from there. Ctrl-C ends it, and so does kill.

    \b
    Examples:
      kullback watch rollouts/ --by step
      kullback watch run.jsonl --html run.html
      kullback watch rollouts/ --once --fail-on error

    Exit status: 0 after Ctrl-C, kill or --once, 1 if --fail-on says so, 2 if something cannot be
    read or written (a full disk, too: the next start goes on from what was kept), or if there
    is nothing to report with --once.
    """
    from kullback.cli.showing import shown

    with one_sentence():
        follower, files = _prepared(Path(place), every, jobs, once=once, **rest)
        show = shown(once=once)
        try:
            with show, _ended_calmly():
                status = _look_on(follower, files, show, every, once, fail_on)
        except KeyboardInterrupt:
            status = 0
            files.keep(follower.progress)
            click.echo(f"Stopped. The next start goes on from {files.state}", err=True)
        files.let_go()
        if status:
            codes = ", ".join(grave_findings(files.report or {"findings": []}, fail_on or ""))
            click.echo(f"kullback: --fail-on {fail_on}: {codes or show.headline}", err=True)
        if once and files.report is None:
            fail(f"there is nothing to report: {show.nothing}")
    sys.exit(status)


@contextmanager
def _ended_calmly() -> Iterator[None]:
    """A request to end (kill, a job's time limit) is what Ctrl-C is, while the block runs."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _prepared(
    place: Path,
    every: float,
    jobs: int,
    *,
    once: bool,
    questions: tuple[str, ...],
    maps: tuple[str, ...],
    by: tuple[str, ...],
    html: str | None,
    json: str | None,
    state: str | None,
) -> tuple[Follower, _Files]:
    from kullback.following.follower import Follower
    from kullback.following.kept import kept, place_for, require_ours
    from kullback.following.progress import Progress
    from kullback.question import Question

    for path in (html, json, state):
        require_place(path)
    if json == "-":
        raise ValueError("--json needs a file: kullback report prints the JSON of one report")
    asked = tuple(str(Question.parse(text)) for text in questions)
    named, axes = columns_by_role(maps), axes_of(by)
    page = Path(html) if html else None
    where = Path(state) if state else place_for(place, page)
    if state:
        require_ours(where)
    elif where.is_symlink():  # put there by somebody else, and what it leads to is not ours
        raise ValueError(f"{where} is a link: remove it, or say --state FILE")
    empty = Progress(__version__, str(place.resolve()), asked, axes, named)
    progress, why = kept(where, empty)
    files = _Files(where, page, Path(json) if json else None, None if once else every)
    files.keep(progress)  # what cannot be written is said before anything is read
    if why:
        click.echo(f"kullback: {why}", err=True)
    open_one = partial(opened, by=axes, map=named)
    return Follower(place, open_one, progress, every=every, jobs=jobs), files


def _look_on(
    follower: Follower,
    files: _Files,
    show: Redrawn | Lines,
    every: float,
    once: bool,
    fail_on: str | None,
) -> int:
    """Look until there is a reason to end; the exit status."""

    def pause() -> None:
        if time.monotonic() - files.kept_at > PAUSE:
            files.keep(follower.progress)
            show.reading(follower.progress.rows)

    show.reading(follower.progress.rows)
    while True:
        look = follower.look(time.time(), pause)
        report = files.update(follower.progress, look.changed)
        show.show(report, look, follower)
        if (
            report is not None
            and fail_on
            and (is_grave(report, fail_on) if once else grave_findings(report, fail_on))
        ):
            return 1
        if once:
            return 0
        time.sleep(every)


class _Files:
    """What is written: the progress first, which is the truth, then the page and the JSON.

    Args:
        state: Where the progress is kept.
        html: The page, if there is to be one.
        json: The JSON, likewise.
        every: Seconds after which the page is loaded anew; None: it is not.
    """

    def __init__(
        self, state: Path, html: Path | None, json: Path | None, every: float | None
    ) -> None:
        self.state, self.html, self.json = state, html, json
        self.refresh = None if every is None else max(1, round(every))
        self.report: dict[str, Any] | None = None
        self.kept_at = 0.0
        self._seen: dict[str, Stamp] = {}

    def keep(self, progress: Progress) -> None:
        from kullback.following.kept import keep

        keep(progress, self.state)
        self.kept_at, self._seen = time.monotonic(), progress.seen

    def update(self, progress: Progress, changed: bool) -> dict[str, Any] | None:
        """Write what has changed; the report, if there is one."""
        from kullback.reporting.document import document, source_of

        if changed or progress.seen != self._seen:
            self.keep(progress)
        if changed or self.report is None:
            summary = progress.summary
            self.report = None if summary is None else document(summary, source_of(progress))
            self._write(self.refresh)
        return self.report

    def let_go(self) -> None:
        """The page stands still from now on."""
        if self.refresh is not None:
            self._write(None)

    def _write(self, refresh: int | None) -> None:
        from kullback.reporting.html import page
        from kullback.reporting.write import write_json, write_page

        if self.report is None:
            return
        if self.html:
            write_page(page(self.report, refresh=refresh), self.html)
        if self.json:
            write_json(self.report, self.json)
