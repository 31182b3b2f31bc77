"""A file of JSON lines that grows: its chunks from a mark on, each with the mark where it begins.

Reading on from the mark of a chunk gives what reading the file from its start gives there, to the
last bit: the numbers of rows, the keys of clusters and the k of heads are carried in the mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kullback.columns import Columns
from kullback.dumps import jsonl, packed
from kullback.dumps.assemble import Assembler
from kullback.dumps.batch import Batch
from kullback.dumps.chunks import chunked
from kullback.dumps.compression import Span
from kullback.dumps.errors import Damaged, DumpError
from kullback.dumps.recognize import Recognition

BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class Mark:
    """A place between two sequences of a file of JSON lines.

    Args:
        offset: The byte at which its line begins.
        row: The number of that line, counted from 0.
        within: How many sequences of that line, if it holds several, stand before the place.
        number: How many sequences of packed rows stand before that line.
        nominal: The k of each role's heads, as far as it has shown before.
    """

    offset: int = 0
    row: int = 0
    within: int = 0
    number: int = 0
    nominal: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk of a file, or what stands behind its last one.

    Args:
        begin: Where it begins.
        columns: Its sequences; None if there are none.
        damaged: Its damaged rows.
        unused: Columns that turned out to be of no use up to its end, with the reason.
    """

    begin: Mark
    columns: Columns | None
    damaged: tuple[Damaged, ...]
    unused: dict[str, str]


def pieces(path: str, name: str, found: Recognition, begin: Mark, stop: int) -> Iterator[Piece]:
    """The chunks from a mark up to a byte at which a line ends; the last piece is always empty.

    Args:
        path: The file.
        name: What it is called where its tokens are placed.
        found: What its columns are; a row is a sequence or a packed batch of them.
        begin: Where to begin.
        stop: Where to end.

    Raises:
        DumpError: The file cannot be read.
    """
    assembler = Assembler(path, name, "line", begin.nominal)
    batches = jsonl.batches(path, found.uses, Span(begin.offset, stop, begin.row))
    if found.grain == "batch":
        batches = _from(packed.sequences(batches, begin.number), begin)
    mark, number = begin, begin.number + begin.within
    for batch in chunked(batches):
        mark, number = _mark(path, batch, mark, number, assembler)
        columns = assembler.columns(batch)
        yield Piece(mark, columns, tuple(assembler.damaged), dict(assembler.unused))
    lines = _lines_between(path, mark.offset, stop)
    after = Mark(stop, mark.row + lines, 0, number, dict(assembler.nominal))
    yield Piece(after, None, (), dict(assembler.unused))


def _from(batches: Iterator[Batch], begin: Mark) -> Iterator[Batch]:
    """Leave out the sequences of the first row that stand before the mark."""
    for batch in batches:
        first = 0
        while begin.within and first < len(batch.rows) and _before(batch, first, begin):
            first += 1
        yield batch.part(first, len(batch.rows), batch.faults) if first else batch


def _before(batch: Batch, entry: int, mark: Mark) -> bool:
    assert batch.within is not None
    return bool(batch.rows[entry] == mark.row and batch.within[entry] < mark.within)


def _mark(
    path: str, batch: Batch, before: Mark, number: int, assembler: Assembler
) -> tuple[Mark, int]:
    """Where a chunk begins, and how many sequences of packed rows stand before its end."""
    row, within = min([(fault.row, 0) for fault in batch.faults], default=(np.inf, 0))
    if len(batch.rows) and batch.rows[0] <= row:
        row, within = int(batch.rows[0]), 0 if batch.within is None else int(batch.within[0])
    row = int(row)
    begins = number - within
    if batch.numbers is not None and len(batch.numbers):
        number = int(batch.numbers[-1]) + 1
    offset = _offset(path, before.offset, row - before.row)
    return Mark(offset, row, within, begins, dict(assembler.nominal)), number


def _offset(path: str, start: int, lines: int) -> int:
    """The byte at which the line begins that stands so many lines behind another."""
    with Path(path).open("rb") as file:
        file.seek(start)
        while lines:
            block = file.read(BLOCK)
            if not block:
                raise DumpError(f"{path} has become shorter while it was read")
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            if len(ends) >= lines:
                return start + int(ends[lines - 1]) + 1
            start, lines = start + len(block), lines - len(ends)
    return start


def _lines_between(path: str, start: int, stop: int) -> int:
    count = 0
    with Path(path).open("rb") as file:
        file.seek(start)
        while start < stop and (block := file.read(min(BLOCK, stop - start))):
            start, count = start + len(block), count + block.count(b"\n")
    return count
