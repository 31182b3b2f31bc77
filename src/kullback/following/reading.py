"""What is new in one file, read: all of it once it stands still, or whole lines while it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from kullback.columns import Columns
from kullback.dumps import Dump, DumpError
from kullback.dumps.compression import breaks_off
from kullback.dumps.pieces import Mark, Piece
from kullback.estimation.summary import Summary
from kullback.following.progress import NAMED, Counted, Counts, Progress, Tail
from kullback.following.stamps import Stamp, ending, last_line_end

UNENDED = "its last line has no end yet"

# Adds the chunks of a file to a summary; nothing is added to nothing.
Sum = Callable[[Iterable[Columns], Summary | None], Summary | None]


def half(path: Path, dump: Dump) -> str | None:
    """Why a file that stands still is not whole, if it can be seen.

    Raises:
        DumpError: It cannot be read.
    """
    if kind := breaks_off(str(path)):
        return f"its {kind} stream has no end yet"
    lines = dump.forms[0].startswith("JSON lines") and not dump.is_compressed(str(path))
    size = path.stat().st_size
    return UNENDED if lines and last_line_end(path, 0, size) < size else None


def whole(
    progress: Progress, name: str, path: Path, dump: Dump, stamp: Stamp, before: list[str], add: Sum
) -> Progress:
    """The progress with a file that was not counted before and is now, as a whole.

    Args:
        progress: Without it.
        name: What it is called.
        path: Where it is.
        dump: The file, opened.
        stamp: What it was at this look.
        before: The files whose tails stand before it.
        add: Adds chunks.

    Raises:
        DumpError: It cannot be read, or was changed meanwhile.
    """
    unused, rows = dict(dump.unused), 0

    def counted() -> Iterator[Columns]:
        nonlocal rows
        for columns in dump.chunks(str(path)):
            rows += len(columns.lengths)
            yield columns

    progress = _closing(progress, before, counted(), add)
    _require_same(path, stamp, stamp.size, None)
    lost = dump.damaged_rows
    late = {column: why for column, why in dump.unused.items() if unused.get(column) != why}
    counts = Counts(rows + lost, lost, tuple(dump.damaged[:NAMED]), late)
    look, fingerprint = progress.looks, dump.fingerprint(str(path))
    own = _own(unused, progress)
    mine = Counted(stamp, look, look, dump.forms[0], fingerprint, own, counts)
    return replace(progress, files=progress.files | {name: mine})


def grown(
    progress: Progress,
    name: str,
    path: Path,
    dump: Dump,
    stamp: Stamp,
    stop: int,
    before: list[str],
    add: Sum,
) -> Progress:
    """The progress with the rows of a growing file up to a byte at which a line ends.

    Its last chunk, which is not full, is read anew with what has come: the rest never again.

    Args and errors are those of ``whole``.
    """
    one = progress.files.get(name)
    begin = Mark() if one is None or one.begin is None else one.begin
    last_bytes = ending(path, stop)
    held = _AllButTheLast(dump.pieces(str(path), begin, stop))
    progress = _closing(progress, before, held.full(), add)
    last, after = held.last, held.after
    tail = None
    if last is not None:
        columns = () if last.columns is None else (last.columns,)
        tail = Tail(add(columns, None), Counts.of(last), after)
    _require_same(path, stamp, stop, last_bytes)
    mine = Counted(
        stamp=stamp if stop == last_line_end(path, stop, stamp.size) else stamp.partial(),
        first=progress.looks if one is None else one.first,
        grown=progress.looks,
        form=dump.forms[0],
        fingerprint=dump.fingerprint(str(path)),
        unused=_own(dump.unused, progress),
        counts=(Counts() if one is None else one.counts) + held.counts,
        begin=after if last is None else last.begin,
        ending=last_bytes,
        tail=tail,
    )
    return replace(progress, files=progress.files | {name: mine})


def _closing(
    progress: Progress, before: list[str], chunks: Iterator[Columns], add: Sum
) -> Progress:
    """The progress with full chunks added, if there are any, behind the tails before them."""
    first = next(chunks, None)
    if first is None:
        return progress
    progress = progress.tails_closed(before)
    return replace(progress, closed=add(chain([first], chunks), progress.closed))


def _own(unused: dict[str, str], progress: Progress) -> dict[str, str]:
    """What is not said of the first file already: thousands of files say the same."""
    known = progress.head.unused if progress.head else {}
    return {column: why for column, why in unused.items() if known.get(column) != why}


def _require_same(path: Path, stamp: Stamp, stop: int, last_bytes: str | None) -> None:
    """Refuse what was read of a file that was not only added to meanwhile."""
    now = Stamp.of(path)
    if last_bytes is None:
        same = now == stamp
    else:
        grew = now.inode == stamp.inode and now.size >= stop
        same = grew and ending(path, stop) == last_bytes
    if not same:
        raise DumpError(f"{path} has changed while it was read")


class _AllButTheLast:
    """The pieces of a file: what the full chunks hold, and the one that is not full."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._open: list[Piece] = []
        self.counts = Counts()

    def full(self) -> Iterator[Columns]:
        """The sequences of the chunks that are full."""
        for piece in self._pieces:
            self._open.append(piece)
            if len(self._open) > 2:  # the last one says where the file ends
                done = self._open.pop(0)
                self.counts += Counts.of(done)
                if done.columns is not None:
                    yield done.columns

    @property
    def last(self) -> Piece | None:
        """The chunk that is not full, once the others were taken."""
        return self._open[0] if len(self._open) > 1 else None

    @property
    def after(self) -> Mark:
        """Where the rows end."""
        return self._open[-1].begin
