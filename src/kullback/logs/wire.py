"""The two encodings that event files and W&B's runs share: protocol buffers and checksums.

Both formats are read by their published field numbers, which never change; so neither logger has
to be installed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number, and the integer or the bytes.

    Fixed-width fields come as their bytes.

    Raises:
        ValueError: The bytes are no message.

    Example:
        >>> list(fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69])))
        [(1, 150), (2, b'hi')]
    """
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield number, value
            continue
        if kind == 2:
            size, place = _varint(data, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of the wire type {kind}")
        if number == 0 or place + size > len(data):
            raise ValueError("a field that is longer than its message")
        yield number, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ValueError("an integer that does not end")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7


def signed(value: int) -> int:
    """A 64-bit integer as its sign says.

    Example:
        >>> signed(2**64 - 1)
        -1
    """
    return value - 2**64 if value >= 2**63 else value


def double(data: int | bytes) -> float:
    """A fixed-width field of eight or four bytes as a number."""
    assert isinstance(data, bytes)
    return struct.unpack("<d" if len(data) == 8 else "<f", data)[0]


def _table() -> tuple[int, ...]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)
        rows.append(byte)
    return tuple(rows)


_CRC32C = _table()


def masked_crc32c(data: bytes) -> int:
    """The checksum of an event file's record: CRC-32C, rotated and moved.

    Example:
        >>> hex(masked_crc32c(b"123456789"))
        '0xc78ab0e5'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC32C[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
