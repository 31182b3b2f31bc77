"""Look at a run again and again: count what is new, wait for what is being written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from kullback.columns import Columns
from kullback.dumps import Dump, DumpError
from kullback.dumps.dump import require_same
from kullback.dumps.errors import printable
from kullback.estimation.axes import USUAL
from kullback.estimation.summary import Summary, summarize
from kullback.following.progress import Counted, Head, Progress
from kullback.following.reading import UNENDED, grown, half, whole
from kullback.following.stamps import Stamp, ending, last_line_end, path_of, stamps_in
from kullback.question import Question, default_questions, presumed_sampler

SLICE = 2**28  # bytes of a growing file that are read before what was counted can be kept
OPEN = 16  # files whose last chunk may wait for more rows: ranks that write to one each
NAMED = 3  # files that a sentence names before it counts the others
UNSETTLED = "it has not stood still from one look to the next"


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found.

    Args:
        changed: Whether the summary is another one than before.
        said: What became of files that had been counted, in sentences.
        waiting: The files that are not counted, or not to their end, with the reason.
    """

    changed: bool
    said: tuple[str, ...]
    waiting: dict[str, str]


class _AgainError(Exception):
    """What was counted does not stand there any more; the text says why."""


class Follower:
    """A file or a folder whose rows are counted as they come, each of them once.

    The summary is at any time that of one pass over the rows counted so far. Chunks are added in
    the order of the files, and those of a growing file end where one pass ends them: of one file,
    or of files written one after another, the summary is that of one pass to the last bit.

    Args:
        place: The file or the folder; it need not be there yet.
        opened: Opens one file as a dump, with the labels that the axes need.
        progress: Where to go on; empty for a new run.
        every: Seconds for which a file has not changed if it is counted at first sight.
        jobs: Threads that work on chunks.
    """

    def __init__(
        self,
        place: Path,
        opened: Callable[[str], Dump],
        progress: Progress,
        *,
        every: float,
        jobs: int = 1,
    ) -> None:
        self.place, self.progress = place, progress
        self.every, self.jobs = every, jobs
        self._opened = opened
        self._last = progress.seen | {name: one.stamp for name, one in progress.files.items()}
        self._gone: set[str] = set()
        self._refused: dict[str, tuple[Stamp, str]] = {}

    def look(self, now: float, pause: Callable[[], None] = lambda: None) -> Look:
        """Count what is new.

        Args:
            now: The time, in seconds as ``time.time`` gives them.
            pause: Called between two steps, where the progress can be kept.

        Raises:
            ValueError: What is asked cannot be answered by these files.
        """
        rows, said, waiting = self.progress.rows, list[str](), dict[str, str]()
        try:
            stamps = stamps_in(self.place)
        except OSError as error:
            return Look(False, (), {self.place.name: f"it cannot be read: {error.strerror}"})
        self.progress = replace(self.progress, looks=self.progress.looks + 1)
        for _ in range(2):
            said += self._vanished(stamps)
            try:
                waiting = self._pass(stamps, now, pause)
                break
            except _AgainError as why:
                said.append(self._again(str(why), stamps))
        seen = {name: one for name, one in stamps.items() if name not in self.progress.files}
        self.progress = replace(self.progress, seen=seen)
        self._last = stamps
        return Look(bool(said) or self.progress.rows != rows, tuple(said), waiting)

    def _vanished(self, stamps: dict[str, Stamp]) -> list[str]:
        gone = {name for name in self.progress.files if name not in stamps}
        new, self._gone = sorted(gone - self._gone), gone
        if not new:
            return []
        more = f" and {len(new) - NAMED} more" * (len(new) > NAMED)
        named = f"{', '.join(new[:NAMED])}{more}"
        return [f"{named}: not there any more; what was counted stays counted"]

    def _again(self, why: str, stamps: dict[str, Stamp]) -> str:
        lost = sum(name not in stamps for name in self.progress.files)
        self.progress, self._gone = self.progress.anew(), set()
        gone = f", without the files that are gone ({lost})" * bool(lost)
        return f"{why}: all is counted from the start{gone}"

    def _pass(
        self, stamps: dict[str, Stamp], now: float, pause: Callable[[], None]
    ) -> dict[str, str]:
        """Count what is new in each file; the files that wait, with the reason."""
        files, waiting = self.progress.files, {}
        for name, one in files.items():
            if name in stamps and (why := self._rewritten(name, one, stamps[name])):
                raise _AgainError(why)
        old = {n for n, s in stamps.items() if now - s.changed / 1e9 >= self.every}
        same = {n for n, s in stamps.items() if self._last.get(n) == s}
        quiet = old | same | (files.keys() - stamps.keys())
        for name in [*(n for n in files if n in stamps), *(n for n in stamps if n not in files)]:
            try:
                reason = self._take(name, stamps[name], quiet, pause)
            except OSError as error:
                reason = f"it cannot be read: {error.strerror}"
            if reason:
                waiting[name] = reason
        tails = [name for name, one in self.progress.files.items() if one.tail is not None]
        self.progress = self.progress.tails_closed(tails[: max(0, len(tails) - OPEN)])
        return waiting

    def _rewritten(self, name: str, one: Counted, stamp: Stamp) -> str | None:
        """Why what was counted of a file does not stand there any more, if so."""
        if stamp == one.stamp:
            return None
        if stamp.inode != one.stamp.inode:
            return f"{name} is another file than the one that was counted"
        if one.begin is None:
            return f"{name} has changed since it was counted"
        if stamp.size < one.end:
            return f"{name} has become shorter than what was counted of it"
        try:
            same = ending(path_of(self.place, name), one.end) == one.ending
        except OSError:
            return None  # what cannot be read is not counted, either
        return None if same else f"{name} was written anew"

    def _take(
        self, name: str, stamp: Stamp, quiet: set[str], pause: Callable[[], None]
    ) -> str | None:
        """Count what is new in a file; why there is more to come, if so."""
        one = self.progress.files.get(name)
        if one is not None and stamp == one.stamp:
            return UNENDED if stamp.size > one.end else None
        if not stamp.size:
            return "it is empty"
        if (refused := self._refused.get(name)) and refused[0] == stamp:
            return refused[1]
        settled = name in quiet
        path = path_of(self.place, name)
        try:
            dump = self._opened(str(path))
            self._require_alike(name, path, dump)
            if dump.grows(str(path)):
                return self._follow(name, path, dump, stamp, quiet, pause)
            reason = half(path, dump) if settled else UNSETTLED
            if reason is None:
                before, add = self._before(name, quiet), self._adding(dump)
                start = self._headed(name, dump)
                self.progress = whole(start, name, path, dump, stamp, before, add)
                pause()
        except DumpError as error:
            reason = _why(str(error), path, settled)
        if reason and settled:
            self._refused[name] = stamp, reason
        return reason

    def _follow(
        self,
        name: str,
        path: Path,
        dump: Dump,
        stamp: Stamp,
        quiet: set[str],
        pause: Callable[[], None],
    ) -> str | None:
        """Count the whole lines of a growing file that are not counted yet."""
        one = self.progress.files.get(name)
        known = 0 if one is None else one.end
        stop = last_line_end(path, known, stamp.size)
        if one is not None and known == stop:  # touched, or no more than the start of a line
            files = self.progress.files | {name: replace(one, stamp=stamp)}
            self.progress = replace(self.progress, files=files)
        while known < stop:
            part = last_line_end(path, known, min(stop, known + SLICE))
            known = part if part > known else stop
            before, add = self._before(name, quiet), self._adding(dump)
            start = self._headed(name, dump)
            self.progress = grown(start, name, path, dump, stamp, known, before, add)
            pause()
        return UNENDED if stamp.size > stop else None

    def _before(self, name: str, quiet: set[str]) -> list[str]:
        """The tails to be closed before full chunks of a file are.

        They are of files before it that stand still and have not grown since it came: one file
        per step. So chunks are added in the order of one pass. Ranks that write at once wait for
        each other and keep their tails, since a chunk that is cut is not that of one pass.
        """
        files = self.progress.files
        names = list(files)
        names = names[: names.index(name)] if name in files else names
        came = files[name].first if name in files else self.progress.looks
        done = (other for other in names if other in quiet and files[other].grown <= came)
        return [other for other in done if files[other].tail is not None]

    def _adding(self, dump: Dump) -> Callable[[Iterable[Columns], Summary | None], Summary | None]:
        def add(chunks: Iterable[Columns], onto: Summary | None) -> Summary | None:
            chunks = iter(chunks)
            first = next(chunks, None)
            if first is None:
                return onto
            asked, every = self._questions(dump), chain([first], chunks)
            how = {"by": self.progress.by, "also": USUAL, "jobs": self.jobs, "onto": onto}
            return summarize(every, questions=asked, **how)

        return add

    def _questions(self, dump: Dump) -> list[Question]:
        roles = self.progress.head.roles if self.progress.head else dump.roles
        usual = default_questions(roles, presumed_sampler(roles).role)
        return list(dict.fromkeys((*usual, *map(Question.parse, self.progress.asked))))

    def _require_alike(self, name: str, path: Path, dump: Dump) -> None:
        """Refuse a file whose columns are not those of the first, or not those that they were."""
        head, one = self.progress.head, self.progress.files.get(name)
        if head is None:
            return
        if one is not None and one.fingerprint != dump.fingerprint(str(path)):
            alone = len(self.progress.files) == 1 and not one.counts.rows
            if one.counts.rows or (head.name == name and not alone):
                raise _AgainError(f"the first lines of {name} now say other columns")
            if alone:
                self.progress = self.progress.anew()
                return
        first = str(path_of(self.place, head.name))
        require_same(first, head.signature, str(path), dump.signature)

    def _headed(self, name: str, dump: Dump) -> Progress:
        """The progress with a first file, which says what holds for all."""
        if self.progress.head is not None:
            return self.progress
        told = dump.roles, dump.columns, dict(dump.unused), dump.signature
        return replace(self.progress, head=Head(name, dump.layout, *told))


def _why(error: str, path: Path, settled: bool) -> str:
    """Why a file is not counted: what is wrong with it, if it is not just half of one."""
    if not settled:
        with path.open("rb") as file:
            lines = file.read(1) == b"{"
        if not lines:
            return UNSETTLED
        if not last_line_end(path, 0, path.stat().st_size):
            return UNENDED
    it = printable(str(path))
    return f"it {error.removeprefix(f'{it} ')}" if error.startswith(f"{it} ") else error
