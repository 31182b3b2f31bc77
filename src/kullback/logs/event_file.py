"""TensorBoard's event files: records of a length, two checksums and a message each."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kullback.dumps.errors import DumpError
from kullback.logs.gather import Point, Points
from kullback.logs.wire import double, fields, masked_crc32c, signed

CHECKED = 4096  # bytes up to which the checksum of a record is computed: scalars, and no images
# Of a tensor's fields: those that hold numbers, by the type of a number.
_TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8", 19: "<f2"}


def is_event_file(head: bytes) -> bool:
    """Whether a file begins as one: a first record that names the version."""
    return len(head) >= 24 and b"brain.Event:" in head[:64]


def points(files: list[Path], run: dict[Path, str]) -> Points:
    """The scalars of event files, in the order of the files.

    Args:
        files: The files; of one run they are read by their names, which hold the time.
        run: The run of each file.
    """
    made = Points(())
    made.points = (
        point for file in sorted(files) for point in _points(file, run[file], made.notes)
    )
    return made


def _points(file: Path, run: str, notes: list[str]) -> Iterator[Point]:
    for place, record in _records(file, notes):
        try:
            yield from _of_event(record, run)
        except (ValueError, struct.error, UnicodeDecodeError) as error:
            raise DumpError(f"{file}, byte {place}: this is no event: {error}") from error


def _records(file: Path, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    """Each record with where it begins; a last one that is not whole is left out."""
    with file.open("rb") as stream:
        place = 0
        while head := stream.read(12):
            if len(head) < 12:
                notes.append(f"{file.name} ends within a record: it may still be written")
                return
            size, check = struct.unpack("<QI", head)
            if masked_crc32c(head[:8]) != check:
                raise DumpError(
                    f"{file}, byte {place}: the length of a record does not fit its checksum; the "
                    "file is damaged there: copy it anew"
                )
            record, tail = stream.read(size), stream.read(4)
            if len(record) < size or len(tail) < 4:
                notes.append(f"{file.name} ends within a record: it may still be written")
                return
            if size <= CHECKED and masked_crc32c(record) != struct.unpack("<I", tail)[0]:
                raise DumpError(
                    f"{file}, byte {place}: a record does not fit its checksum; the file is "
                    "damaged there: copy it anew"
                )
            yield place, record
            place += size + 16


def _of_event(record: bytes, run: str) -> Iterator[Point]:
    time, step, summary = math.nan, 0, b""
    for number, value in fields(record):
        if number == 1:
            time = double(value)
        elif number == 2:
            step = signed(int(value))
        elif number == 5:
            summary = value
    assert isinstance(summary, bytes)
    for number, value in fields(summary):
        if number == 1 and isinstance(value, bytes):
            name, found = _of_value(value)
            if found is not None:
                yield Point(run, name, float(step), found, time)


def _of_value(data: bytes) -> tuple[str, float | None]:
    name, found = "", None
    for number, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            name = value.decode()
        elif number == 2:
            found = double(value)
        elif number == 8 and isinstance(value, bytes):
            found = _of_tensor(value)
    return name, found


def _of_tensor(data: bytes) -> float | None:
    """The one number of a tensor; None where it holds text, or several numbers."""
    kind, content, several = 0, b"", []
    for number, value in fields(data):
        if number == 1:
            kind = int(value)
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in (5, 6):  # float_val, double_val: packed, or one by one
            assert isinstance(value, bytes)
            several += np.frombuffer(value, "<f4" if number == 5 else "<f8").tolist()
        elif number in (7, 10) and isinstance(value, int):
            several.append(float(signed(value)))
    if content and kind in _TYPES:
        several = np.frombuffer(content, _TYPES[kind]).astype(np.float64).tolist()
    return several[0] if len(several) == 1 else None
