"""Compressed JSON lines: whole, in several members, cut off, damaged, far larger than they look."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from kullback.dumps import DumpError, compression, read

ROWS = [{"log_probs.a": [-1.0 - i], "log_probs.b": [-1.5 - i]} for i in range(9000)]
TEXT = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


@pytest.fixture(params=[gzip.compress, zstd], ids=["gzip", "zstd"])
def packed(request: pytest.FixtureRequest) -> Callable[[bytes], bytes]:
    return request.param


def file(folder: Path, content: bytes) -> Path:
    path = folder / "a.jsonl"
    path.write_bytes(content)
    return path


def test_compressed_lines_are_lines(tmp_path: Path, packed):
    dump = read(file(tmp_path, packed(TEXT)))
    assert (dump.format, dump.rows) == ("kullback JSON lines", None)
    (chunk,) = dump
    assert chunk.log_probs["a"].tolist() == [-1.0 - i for i in range(9000)]
    assert dump.rows == 9000


def test_members_one_after_another_are_one_file(tmp_path: Path, packed):
    half = len(TEXT) // 2
    (chunk,) = read(file(tmp_path, packed(TEXT[:half]) + packed(TEXT[half:])))
    assert len(chunk) == 9000


def test_a_stream_that_breaks_off_is_a_named_damaged_row(tmp_path: Path, packed):
    whole = packed(TEXT[: len(TEXT) // 2]) + packed(TEXT[len(TEXT) // 2 :])
    path = file(tmp_path, whole[:-40])
    dump = read(path)
    (chunk,) = dump
    assert 4000 < len(chunk) < 9000
    (damaged,) = dump.damaged
    assert damaged.row == len(chunk)
    assert damaged.reason.endswith(" stream breaks off here: what followed is lost")
    with pytest.raises(DumpError, match=r"line \d+: the (gzip|zstd) stream breaks off here"):
        list(read(path, strict=True))


def test_a_stream_cut_in_its_first_block_is_one_sentence(tmp_path: Path, packed):
    for size in (5, 12, 20):
        with pytest.raises(DumpError, match=r"a\.jsonl "):
            list(read(file(tmp_path, packed(TEXT)[:size])))


def test_a_damaged_stream_is_refused(tmp_path: Path):
    whole = bytearray(gzip.compress(TEXT))
    whole[-6] ^= 1  # the checksum: everything before it could be wrong
    with pytest.raises(DumpError, match=r"a\.jsonl cannot be read: CRC check failed"):
        list(read(file(tmp_path, bytes(whole))))
    whole[len(whole) // 2 : len(whole) // 2 + 8] = bytes(8)
    with pytest.raises(DumpError, match=r"a\.jsonl cannot be read: "):
        list(read(file(tmp_path, bytes(whole))))


def test_rubbish_behind_a_stream_is_refused(tmp_path: Path, packed):
    with pytest.raises(DumpError, match=r"a\.jsonl cannot be read: "):
        list(read(file(tmp_path, packed(TEXT) + b"rubbish")))


def test_what_is_packed_must_be_json_lines(tmp_path: Path, packed):
    with pytest.raises(DumpError, match=r"is (gzip|zstd) of something else than JSON lines"):
        read(file(tmp_path, packed(b"PAR1" + bytes(99))))


def test_a_line_without_end_is_skipped_in_blocks(tmp_path: Path, packed, monkeypatch):
    monkeypatch.setattr(compression, "LONGEST_LINE", 1000)
    lines = TEXT.splitlines(keepends=True)
    content = b"".join([lines[0], b"{" + b" " * 10**6 + b"}\n", lines[1], b"x" * 5000])
    dump = read(file(tmp_path, packed(content)))
    (chunk,) = dump
    assert chunk.log_probs["a"].tolist() == [-1.0, -2.0]
    assert [one.place for one in dump.damaged] == ["line 2", "line 4"]
    assert dump.damaged[0].reason.startswith("is longer than 128 MiB")


def test_a_folder_stands_for_compressed_files_too(tmp_path: Path):
    for name, content in (("a.jsonl.gz", gzip.compress(TEXT)), ("b.jsonl.zst", zstd(TEXT))):
        (tmp_path / name).write_bytes(content)
    dump = read(tmp_path)
    assert dump.names == ("a.jsonl.gz", "b.jsonl.zst")
    assert sum(len(chunk) for chunk in dump) == 18000


@pytest.mark.parametrize("cut", [1, 9, 200])
def test_a_stream_without_its_end_is_told_from_a_whole_one(tmp_path, cut):
    data = "".join(f'{{"a": {i * 7919 % 10007}}}\n' for i in range(3000)).encode()
    gz, zst, plain = (tmp_path / f"a.{suffix}" for suffix in ("gz", "zst", "jsonl"))
    with pa.CompressedOutputStream(str(zst), "zstd") as file:
        file.write(data)
    gz.write_bytes(gzip.compress(data))
    plain.write_bytes(data)
    assert [compression.breaks_off(str(path)) for path in (gz, zst, plain)] == [None, None, None]
    for path in (gz, zst, plain):
        path.write_bytes(path.read_bytes()[:-cut])
    assert [compression.breaks_off(str(path)) for path in (gz, zst, plain)] == [
        "gzip",
        "zstd",
        None,
    ]


def test_a_span_is_some_lines_with_the_numbers_that_they_have(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n\nthree\nfour\nfi")

    def some(*span: int) -> list[tuple[int, bytes | str]]:
        return list(compression.lines(str(path), compression.Span(*span)))

    assert some(4, 16, 1) == [(2, b"three\n"), (3, b"four\n")]
    assert some(0, 4, 0) == [(0, b"one\n")]
    assert some(4, 4, 1) == []
