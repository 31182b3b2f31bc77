"""A row per token: where sequences end, and what makes one unusable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kullback.dumps import DumpError, parquet, read
from kullback.dumps.chunks import CHUNK_TOKENS

Rows = list[dict[str, Any]]


def tokens(ids: list[Any], **more: list[Any]) -> Rows:
    """A row for each id, with log-probs that say which it is."""
    columns = {"sequence": ids, "log_probs.a": [-1.0 - i for i in range(len(ids))]}
    columns |= {"log_probs.b": [-1.5] * len(ids)} | more
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_rows_of_one_id_are_a_sequence_placed_by_its_first_row(either):
    dump = read(either(tokens([7, 7, 3, 9, 9, 9])))
    assert dump.format.endswith(", one row per token")
    assert next((one.role, one.column) for one in dump.columns) == ("sequence", "sequence")
    (chunk,) = dump
    assert dump.rows == 3
    assert chunk.lengths.tolist() == [2, 1, 3]
    assert str(chunk.place(4)).endswith("row 3, token 1")
    assert chunk.log_probs["a"].tolist() == [-1, -2, -3, -4, -5, -6]


def test_what_is_said_of_a_sequence_must_not_change_in_it(either):
    steps = [1, 1, 1, 2, 2, 2]
    rows = tokens([7, 7, 3, 3, 9, 9], step=steps, text=["a", "a", "b", "b", None, None])
    dump = read(either(rows))
    (chunk,) = dump
    assert chunk.labels["step"].tolist() == [1, 2]
    assert chunk.text == ["a", None]
    (damaged,) = dump.damaged
    assert (damaged.row, damaged.reason) == (2, "step changes within the sequence, from 1 to 2")


def test_positions_must_count_from_0(either):
    ids = ["x", "x", "y", "y", "z", "z", "u", "u"]
    dump = read(either(tokens(ids, position=[0, 1, 1, 2, 1, 0, 0, None])))
    (chunk,) = dump
    assert chunk.rows is not None
    assert chunk.rows.tolist() == [0]
    assert [one.row for one in dump.damaged] == [2, 4, 6]
    assert dump.damaged[0].reason == (
        "position holds 1 where 0 should stand: the rows of a sequence are its tokens in order, "
        "counted from 0"
    )
    assert dump.damaged[2].reason.startswith("position holds nan where 1")


@pytest.mark.parametrize("group", [1, 2, 100])
def test_an_id_that_comes_back_is_refused_with_its_place(tmp_path: Path, group: int):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(tokens([7, 7, 3, 7])), path, row_group_size=group)
    with pytest.raises(DumpError) as error:
        list(read(path))
    assert str(error.value) == (
        f"{path}, row 3: sequence 7 comes back after another one: its rows must follow one "
        "another, and its id be its own in the file"
    )


def test_a_sequence_without_id_is_damaged(either):
    dump = read(either(tokens([7, 7, None, None, 3])))
    (chunk,) = dump
    assert chunk.lengths.tolist() == [2, 1]
    assert [(one.row, one.reason) for one in dump.damaged] == [(2, "sequence is null")]


@pytest.mark.parametrize("at_once", [1, 2, 3, 7, 1000])
def test_sequences_go_on_over_row_groups_and_chunks(tmp_path, monkeypatch, at_once: int):
    monkeypatch.setattr(parquet, "DECODED_AT_ONCE", 3 * at_once)
    lengths = [1, 5, 2, 2, 30, 1, 1, 9]
    ids = np.repeat(np.arange(len(lengths)) * 5 % 8, lengths).tolist()
    rows = tokens(ids, prompt_id=[f"p{i // 2}" for i in ids])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=4)
    (chunk,) = read(path)
    assert chunk.lengths.tolist() == lengths
    assert chunk.log_probs["a"].tolist() == [-1.0 - i for i in range(len(ids))]
    assert chunk.labels["prompt_id"].tolist() == [f"p{i * 5 % 8 // 2}" for i in range(8)]


def test_a_sequence_longer_than_a_chunk_stays_whole(tmp_path: Path):
    size = 3 * CHUNK_TOKENS + 5
    logged = pa.array(-np.arange(size, dtype=np.float32))
    ids = pa.array(np.r_[np.zeros(size - 5, np.int64), np.ones(5, np.int64)])
    table = pa.table({"log_probs.a": logged, "log_probs.b": logged, "seq_id": ids})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100_000)
    assert [len(chunk) for chunk in read(tmp_path / "a.parquet")] == [size - 5, 5]


def test_a_garbled_line_costs_the_sequences_it_may_belong_to(tmp_path: Path):
    lines = [json.dumps(row) for row in tokens([1, 1, 2, 2, 3, 3, 4, 4, 5])]
    lines[3] = lines[3][:-5]  # inside 2, or so it looks
    lines.insert(6, "garbled")  # between 3 and 4
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    dump = read(path)
    (chunk,) = dump
    assert chunk.rows is not None
    assert chunk.rows.tolist() == [0, 9]
    assert [(one.place, one.reason.partition(" is not")[0]) for one in dump.damaged] == [
        ("line 3", "line 4, in it or beside it,"),
        ("line 5", "line 4, in it or beside it,"),
        ("line 8", "line 7, in it or beside it,"),
    ]


@pytest.mark.parametrize("at_once", [1, 10**6])
def test_a_file_that_was_cut_loses_its_last_sequence(tmp_path, monkeypatch, at_once: int):
    monkeypatch.setattr("kullback.dumps.jsonl.DECODED_AT_ONCE", at_once)
    text = "\n".join(json.dumps(row) for row in tokens([1, 1, 2, 2]))
    path = tmp_path / "a.jsonl"
    path.write_text(text[:-10])
    dump = read(path)
    (chunk,) = dump
    assert chunk.lengths.tolist() == [2]
    assert dump.damaged[0].place == "line 3"


def test_a_token_that_holds_no_number_spoils_its_sequence(plain):
    rows = tokens([1, 1, 2, 2, 3, 3])
    rows[3]["log_probs.a"] = "x"
    dump = read(plain("a.jsonl", rows))
    (chunk,) = dump
    assert chunk.lengths.tolist() == [2]
    assert dump.damaged[0].reason == (
        'line 4, in it or beside it, log_probs.a holds "x", not a number'
    )


def test_names_and_the_caller_say_which_column_joins(either, plain):
    rows = [{"episode": row.pop("sequence"), **row} for row in tokens([1, 1, 2])]
    path = either(rows)
    with pytest.raises(DumpError, match=r"if a row is a token, --map sequence=COLUMN says of what"):
        read(path)
    (chunk,) = read(path, map={"sequence": "episode"})
    assert chunk.lengths.tolist() == [2, 1]
    both = [row | {"seq_id": 1, "sample_id": 2} for row in rows]
    with pytest.raises(DumpError, match="seq_id and sample_id both look like sequence"):
        read(plain("b.jsonl", both))


def test_what_joins_rows_cannot_be_mapped_where_rows_are_sequences(plain):
    row = {"log_probs.a": [-1.0], "log_probs.b": [-1.0], "id": 3}
    with pytest.raises(
        DumpError, match="nothing can be mapped to sequence, as a row is a sequence"
    ):
        read(plain("a.jsonl", [row]), map={"sequence": "id"})
