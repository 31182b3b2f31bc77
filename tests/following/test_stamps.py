from __future__ import annotations

import os
from pathlib import Path

import pytest

from kullback.following.stamps import Stamp, ending, last_line_end, path_of, stamps_in


def test_a_stamp_tells_a_file_from_itself_after_a_change(tmp_path: Path):
    path = tmp_path / "a"
    path.write_text("one")
    first = Stamp.of(path)
    assert Stamp.of(path) == first
    os.utime(path, ns=(1, 1))
    assert Stamp.of(path) == Stamp(3, 1, first.inode)
    assert first.partial() not in (first, Stamp.of(path))
    (tmp_path / "b").write_text("one")
    (tmp_path / "b").replace(path)
    assert Stamp.of(path).inode != first.inode


def test_a_folder_stands_for_its_dumps_in_the_order_of_their_names(tmp_path: Path):
    for name in ("b.jsonl", "a.parquet", ".c.jsonl", "d.html", "e.npz.tmp"):
        (tmp_path / name).write_text("x")
    (tmp_path / "f.jsonl").symlink_to("b.jsonl")
    (tmp_path / "g.jsonl").symlink_to("nowhere")
    assert list(stamps_in(tmp_path)) == ["a.parquet", "b.jsonl"]
    assert list(stamps_in(tmp_path / "d.html")) == ["d.html"]
    assert stamps_in(tmp_path / "nothing") == {}


def test_a_file_may_be_called_like_its_folder(tmp_path: Path):
    folder = tmp_path / "a.jsonl"
    folder.mkdir()
    (folder / "a.jsonl").write_text("x")
    assert path_of(folder, "a.jsonl") == folder / "a.jsonl"
    assert path_of(folder / "a.jsonl", "a.jsonl") == folder / "a.jsonl"


@pytest.mark.parametrize("gap", [0, 1, 2**16 - 1, 2**16, 2**17 + 5])
def test_the_last_end_of_a_line_is_found_however_far_back(tmp_path: Path, gap: int):
    path = tmp_path / "a"
    path.write_bytes(b"12\n456\n" + b"x" * gap)
    assert last_line_end(path, 0, 7 + gap) == 7
    assert last_line_end(path, 0, 6) == 3
    assert last_line_end(path, 0, 2) == 0
    assert last_line_end(path, 7, 7 + gap) == 7
    assert last_line_end(path, 3, 6) == 3


def test_the_bytes_before_a_place(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    assert ending(path, 100) == bytes(range(36, 100)).hex()
    assert ending(path, 2) == "0001"
    assert ending(path, 0) == ""
