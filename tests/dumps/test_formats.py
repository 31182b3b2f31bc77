"""The first bytes tell the format, whatever the name says."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kullback.dumps.errors import DumpError
from kullback.dumps.formats import READERS, format_of


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"PAR1", "Parquet"),
        (b"ARROW1\0\0", "Arrow"),
        (b"\xff\xff\xff\xff", "Arrow"),
        (b"PK\x03\x04", "NPZ"),
        (b'\xef\xbb\xbf \n{"a": 1}', "JSON lines"),
        (gzip.compress(b' {"a": 1}\n', mtime=0), "JSON lines"),
    ],
)
def test_the_first_bytes_tell_the_format(tmp_path: Path, head: bytes, name: str):
    path = tmp_path / "a.txt"
    path.write_bytes(head)
    assert format_of(str(path)) == name
    assert name in READERS


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"a,b\n1,2\n", "begins neither as Parquet (PAR1) nor as JSON lines ({)"),
        (gzip.compress(b"PAR1", mtime=0), "is gzip of something else than JSON lines"),
    ],
)
def test_anything_else_is_one_sentence(tmp_path: Path, content: bytes, said: str):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(DumpError) as error:
        format_of(str(path))
    assert str(error.value).startswith(f"{path} {said}: ")
