from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import kullback as kb
from kullback.dumps import DumpError
from kullback.following.progress import Progress
from kullback.following.reading import UNENDED, grown, half, whole
from kullback.following.stamps import Stamp

ROW = {"log_probs.old": [-1.0, -2.0], "log_probs.current": [-1.5, -2.5]}
LINE = json.dumps(ROW).encode() + b"\n"


def add(chunks, onto):
    found = list(chunks)
    return kb.summarize(found, onto=onto) if found else onto


def test_half_a_file_is_told_where_it_can_be_seen(tmp_path: Path):
    packed = gzip.compress(b"".join(LINE.replace(b"2.5", b"2.%d" % i) for i in range(5000)))
    token = b'{"sequence": 1, "log_probs.old": -1, "log_probs.current": -2}\n'
    for name, data, why in (
        ("a.jsonl.gz", packed, None),
        ("b.jsonl.gz", packed[:-9], "its gzip stream has no end yet"),
        ("c.jsonl", token, None),
        ("d.jsonl", token[:-1], UNENDED),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        assert half(path, kb.read(path)) == why
    (tmp_path / "e.parquet").touch()
    kb.write(kb.read(tmp_path / "a.jsonl.gz"), tmp_path / "e.parquet")
    assert half(tmp_path / "e.parquet", kb.read(tmp_path / "e.parquet")) is None


@pytest.mark.parametrize("how", ["whole", "grown"])
def test_a_file_that_is_rewritten_while_it_is_read_adds_nothing(tmp_path: Path, how: str):
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE * 5)
    dump, stamp, start = kb.read(path), Stamp.of(path), Progress("1", "")

    def meanwhile(chunks, onto):
        path.write_bytes(LINE * 2)
        return add(chunks, onto)

    stop: Any = () if how == "whole" else (stamp.size,)
    read: Any = whole if how == "whole" else grown
    with pytest.raises(DumpError, match=r"has changed (while|since)"):
        read(start, "a.jsonl", path, dump, stamp, *stop, [], meanwhile)
    assert start == Progress("1", "")


def test_a_file_that_is_only_added_to_while_it_is_read_is_counted_as_it_was(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE * 5)
    dump, stamp = kb.read(path), Stamp.of(path)

    def meanwhile(chunks, onto):
        with path.open("ab") as file:
            file.write(LINE)
        return add(chunks, onto)

    found = grown(Progress("1", ""), "a", path, dump, stamp, stamp.size, [], meanwhile)
    assert (found.rows, found.files["a"].end) == (5, stamp.size)
    part = grown(found.anew(), "a", path, dump, stamp, 2 * len(LINE), [], add)
    assert part.rows == 2
    assert part.files["a"].stamp == stamp.partial()
