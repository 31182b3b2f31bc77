"""W&B's offline runs (``run-*.wandb``): blocks of records, of which the history is read."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from kullback.dumps.errors import DumpError
from kullback.logs.gather import Point, Points, as_number
from kullback.logs.wire import double, fields, signed

MAGIC = b":W&B"
BLOCK = 32768  # bytes; a record may be cut into pieces at the end of a block
HEAD = 7  # bytes of the head of the file, and of that of a piece
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
HISTORY, METRIC = 2, 12  # the fields of a record that are read


def points(file: Path) -> Points:
    """The numbers of the history of a run."""
    made = Points(())
    made.points = _points(file, made.notes)
    return made


def _points(file: Path, notes: list[str]) -> Iterator[Point]:
    axes: dict[str, str] = {}
    last: dict[str, float] = {}
    for place, record in _records(file, notes):
        try:
            for number, value in fields(record):
                if number == HISTORY and isinstance(value, bytes):
                    yield from _of_history(value, axes, last)
                elif number == METRIC and isinstance(value, bytes):
                    axes |= _axis(value)
        except (ValueError, struct.error) as error:
            raise DumpError(f"{file}, byte {place}: this is no record of W&B: {error}") from error


def _records(file: Path, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    data = file.read_bytes()
    place, begun, kind, pieces = HEAD, 0, LAST, []
    while place < len(data):
        left = BLOCK - place % BLOCK
        if left < HEAD:
            place += left
            continue
        check, size, kind = struct.unpack("<IHB", data[place : place + HEAD].ljust(HEAD, b"\0"))
        piece = data[place + HEAD : place + HEAD + size]
        if place + HEAD + size > len(data):
            notes.append(f"{file.name} ends within a record: the run may still be written")
            return
        if kind not in (WHOLE, FIRST, MIDDLE, LAST) or zlib.crc32(bytes([kind]) + piece) != check:
            raise DumpError(
                f"{file}, byte {place}: a record does not fit its checksum; the file is damaged "
                "there: copy it anew, or export the history"
            )
        if kind in (WHOLE, FIRST):
            begun, pieces = place, []
        pieces.append(piece)
        place += HEAD + size
        if kind in (WHOLE, LAST):
            yield begun, b"".join(pieces)
    if kind in (FIRST, MIDDLE):
        notes.append(f"{file.name} ends within a record: the run may still be written")


def _axis(data: bytes) -> dict[str, str]:
    """The names that a metric is defined for (``define_metric``), and what is its step."""
    said = {number: value for number, value in fields(data) if isinstance(value, bytes)}
    name = said.get(1) or said.get(2)  # of one metric, or a pattern for several
    return {name.decode(): said[4].decode()} if name and 4 in said else {}


def _of_history(data: bytes, axes: dict[str, str], last: dict[str, float]) -> Iterator[Point]:
    """The numbers of one row; ``_step`` and ``_timestamp`` stand among them.

    Rows are counted by ``_step``. Where another number was defined as the step of a name, its value
    in this row, or else its last one, is the step.
    """
    step = math.nan
    found: dict[str, float] = {}
    for number, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            name, one = _item(value)
            if one is not None:
                found[name] = one
        elif number == 2 and isinstance(value, bytes):
            step = float(next((v for n, v in fields(value) if n == 1), 0))
    step = found.pop("_step", step)
    time = found.pop("_timestamp", math.nan)
    found.pop("_runtime", None)
    last |= {
        name: found[name] for name in axes.values() if math.isfinite(found.get(name, math.nan))
    }
    for name, value in found.items():
        asked = axes.get(name) or next((on for of, on in axes.items() if fnmatchcase(name, of)), "")
        at = last.get(asked, step)
        if math.isfinite(at):
            yield Point("", name, at, value, time)


def _item(data: bytes) -> tuple[str, float | None]:
    path, found = [], None
    for number, value in fields(data):
        if number in (1, 2) and isinstance(value, bytes):
            path.append(value.decode())
        elif number == 5 and isinstance(value, int):
            found = float(signed(value))
        elif number == 6:
            found = double(value)
        elif number == 16 and isinstance(value, bytes):
            found = as_number(json.loads(value))
    return "/".join(path), found
