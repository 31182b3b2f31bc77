from __future__ import annotations

import struct

import pytest

from kullback.logs.wire import double, fields, masked_crc32c, signed


def test_numbers_of_every_width_are_fields():
    data = bytes([0x08, 0x01, 0x11]) + struct.pack("<d", 1.5) + bytes([0x1D])
    found = list(fields(data + struct.pack("<f", 2.5)))
    assert found[0] == (1, 1)
    assert [double(value) for _, value in found[1:]] == [1.5, 2.5]


@pytest.mark.parametrize(
    "data",
    [b"\x80", b"\x0a\x05ab", b"\x0b", b"\x02\x00", b"\x08" + b"\xff" * 11, b"\x09\x00"],
)
def test_what_is_no_message_is_refused(data):
    with pytest.raises(ValueError, match=r"a field|an integer"):
        list(fields(data))


def test_signs_are_those_of_64_bits():
    assert [signed(one) for one in (0, 5, 2**63, 2**64 - 2)] == [0, 5, -(2**63), -2]


def test_the_checksum_is_crc_32c():
    assert masked_crc32c(b"") == 0xA282EAD8
