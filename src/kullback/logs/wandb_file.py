"""W&B's offline runs (``run-*.wandb``): blocks of records, of which the history is read."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from kullback.dumps.errors import DumpError
from kullback.logs.gather import Point, Points, as_number
from kullback.logs.wire import double, fields, signed

MAGIC = b":W&B"
BLOCK = 32768  # bytes; a record may be cut into pieces at the end of a block
HEAD = 7  # bytes of the head of the file, and of that of a piece
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def points(file: Path) -> Points:
    """The numbers of the history of a run."""
    made = Points(())
    made.points = _points(file, made.notes)
    return made


def _points(file: Path, notes: list[str]) -> Iterator[Point]:
    for place, record in _records(file, notes):
        try:
            for number, value in fields(record):
                if number == 2 and isinstance(value, bytes):
                    yield from _of_history(value)
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


def _of_history(data: bytes) -> Iterator[Point]:
    """The numbers of one step; ``_step`` and ``_timestamp`` stand among them."""
    step, found = math.nan, {}
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
    if math.isfinite(step):
        for name, value in found.items():
            yield Point("", name, step, value, time)


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
