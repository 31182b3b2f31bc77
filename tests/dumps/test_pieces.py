from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kullback as kb
from kullback.dumps import chunks, jsonl
from kullback.dumps.errors import DumpError
from kullback.dumps.pieces import Mark, Piece

PACKED = {"lengths": [3, 2, 4], "prompt_id": 7}


def row(tokens: int, /, **more) -> str:
    values = np.linspace(-2, -1, tokens).tolist()
    both = {"log_probs.old": values, "log_probs.current": values}
    return json.dumps(both | more) + "\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(chunks, "CHUNK_TOKENS", 12)
    monkeypatch.setattr(jsonl, "DECODED_AT_ONCE", 300)
    return tmp_path / "a.jsonl"


def columns(piece: Piece) -> kb.Columns:
    assert piece.columns is not None
    return piece.columns


def numbers(batch: kb.Columns) -> list[int]:
    assert batch.rows is not None
    return batch.rows.tolist()


def all_of(dump: kb.Dump, begin: Mark, stop: int):
    return list(dump.pieces(str(dump.files[0]), begin, stop))


def test_the_pieces_are_the_chunks_and_an_end(path: Path):
    text = "".join(row(n) for n in (5, 5, 5, 12, 1)) + "\n{broken\n" + row(9)
    path.write_text(text)
    dump = kb.read(path)
    *found, end = all_of(dump, Mark(), len(text))
    assert [numbers(columns(one)) for one in found] == [[0, 1], [2], [3], [4, 7]]
    assert [[d.row for d in one.damaged] for one in found] == [[], [], [], [6]]
    assert [numbers(columns(one)) for one in found] == [numbers(c) for c in dump]
    assert end == type(end)(Mark(len(text), 8), None, (), {})


def test_reading_on_from_any_mark_gives_the_same_pieces(path: Path):
    """Packed rows, too, where a chunk may begin within a row."""
    for lines in (
        [row(n) for n in (5, 5, 5, 12, 1, 3, 4, 20, 1)],
        [row(9, **PACKED), "\n", row(9, **PACKED), row(8, **PACKED), *[row(9, **PACKED)] * 4],
    ):
        text = "".join(lines)
        path.write_text(text)
        dump = kb.read(path)
        found = all_of(dump, Mark(), len(text))
        assert len(found) > 4
        for i, one in enumerate(found):
            again = all_of(dump, one.begin, len(text))
            assert [p.begin for p in again] == [p.begin for p in found[i:]]
            for a, b in zip(again[:-1], found[i:-1], strict=True):
                assert str(a.columns) == str(b.columns)
                assert columns(a).clusters.tolist() == columns(b).clusters.tolist()
                assert [str(d) for d in a.damaged] == [str(d) for d in b.damaged]
    assert any(one.begin.within for one in found)


def test_what_stands_behind_the_end_is_not_read(path: Path):
    first, text = row(5), row(5) + row(4)
    path.write_text(text + '{"log')
    dump = kb.read(path)
    [one, end] = all_of(dump, Mark(), len(first))
    assert len(columns(one)) == 5
    assert end.begin == Mark(len(first), 1)
    [one, end] = all_of(dump, end.begin, len(text))
    assert numbers(columns(one)) == [1]


def test_columns_that_turn_up_late_are_named_from_any_mark(path: Path):
    text = "".join(row(5) for _ in range(20)) + row(5, late=1)
    path.write_text(text)
    dump = kb.read(path)
    pieces = all_of(dump, Mark(), len(text))
    begin = pieces[-2].begin
    assert begin.row > 16
    assert set(all_of(dump, begin, len(text))[-1].unused) == {"late"} == set(pieces[-1].unused)


def test_a_file_that_becomes_shorter_is_an_error(path: Path):
    text = row(5) * 40
    path.write_text(text)
    dump = kb.read(path)
    found = dump.pieces(str(path), Mark(), len(text))
    next(found)
    path.write_text("")
    with pytest.raises(DumpError, match="has become shorter while it was read"):
        list(found)


def test_lines_grow_and_nothing_else_does(tmp_path: Path):
    import gzip

    plain, packed, packed_gz, tokens, parquet = (
        tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl.gz", "d.jsonl", "e.parquet")
    )
    plain.write_text(row(3))
    packed.write_text(row(9, **PACKED))
    packed_gz.write_bytes(gzip.compress(row(3).encode()))
    tokens.write_text('{"sequence": 1, "log_probs.old": -1.0, "log_probs.current": -1.5}\n')
    kb.write(kb.read(plain), parquet)
    grown = {one.name: kb.read(one).grows(str(one)) for one in tmp_path.iterdir()}
    assert {name for name, grows in grown.items() if grows} == {"a.jsonl", "b.jsonl"}


def test_a_fingerprint_is_of_what_the_columns_are(tmp_path: Path):
    marks = {}
    for name, text in {
        "a": row(3),
        "b": row(5),
        "c": row(3, reward=1.0),
        "d": row(3, entropy=None),
    }.items():
        (tmp_path / f"{name}.jsonl").write_text(text)
        marks[name] = kb.read(tmp_path / f"{name}.jsonl").fingerprint(
            str(tmp_path / f"{name}.jsonl")
        )
    assert marks["a"] == marks["b"]
    assert len(set(marks.values())) == 3


def test_the_k_of_heads_is_carried(path: Path):
    """The first rows show that two were asked for; the last ones, alone, could be one and more."""
    names = ("tokens", "top_ids.old", "top_log_probs.old")
    first, last = (
        dict(zip(names, ([1] * 5, [ids] * 5, [[-0.5, -2.0]] * 5), strict=True))
        for ids in ([1, 2], [2, 1])
    )
    text = row(5, **first) * 4 + row(5, **last) * 8
    path.write_text(text)
    dump = kb.read(path)
    found = all_of(dump, Mark(), len(text))
    begin = found[4].begin
    assert (begin.row, begin.nominal) == (8, {"old": 2})
    again, *_ = all_of(dump, begin, len(text))
    assert columns(again).top_k["old"].ids.shape == (10, 2)
    alone, *_ = all_of(dump, replace(begin, nominal={}), len(text))
    assert columns(alone).top_k["old"].ids.shape == (10, 1)
