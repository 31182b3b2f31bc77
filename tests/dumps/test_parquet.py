"""Parquet as other people write it: nulls, slices, row groups, list types, dictionaries, damage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kullback.dumps import DumpError, parquet, read
from kullback.dumps.chunks import CHUNK_TOKENS


def written(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.list_(pa.float64()),
        pa.list_(pa.float16()),
        pa.large_list(pa.float32()),
        pa.list_(pa.float32(), 2),
        pa.list_(pa.field("item", pa.float32(), nullable=False)),
    ],
)
def test_any_list_of_floats_is_read(tmp_path: Path, kind: pa.DataType):
    # pyarrow takes half precision from NumPy only
    number = np.float16 if kind.value_type == pa.float16() else float
    rows = [[number(-1.0), number(-2.0)], [number(-0.5), number(-4.0)]]
    values = pa.array(rows, type=kind)
    path = written(tmp_path / "a.parquet", pa.table({"log_probs.a": values, "log_probs.b": values}))
    (chunk,) = read(path)
    assert chunk.log_probs["a"].tolist() == [-1.0, -2.0, -0.5, -4.0]
    expected = np.float64 if kind.value_type == pa.float64() else np.float32
    assert chunk.log_probs["a"].dtype == expected


@pytest.mark.parametrize("group", [1, 3, 1000])
def test_nulls_and_row_groups_do_not_shift_anything(tmp_path: Path, group: int):
    random = np.random.default_rng(0)
    rows = [
        None
        if random.random() < 0.2
        else [None if x < -2 else x for x in -random.exponential(size=n)]
        for n in random.integers(0, 6, size=60)
    ]
    other = [[-1.0] * len(row) if row is not None else [-1.0, -2.0] for row in rows]
    table = pa.table({"log_probs.a": rows, "log_probs.b": other})
    (chunk,) = read(written(tmp_path / "a.parquet", table, row_group_size=group))
    expected = [
        np.nan if x is None else x for row in rows for x in row or [None, None][: 2 * (row is None)]
    ]
    np.testing.assert_array_equal(chunk.log_probs["a"], expected)


def test_chunks_do_not_depend_on_row_groups(tmp_path: Path):
    lengths = [CHUNK_TOKENS // 3] * 7 + [2 * CHUNK_TOKENS, 5]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = pa.ListArray.from_arrays(offsets, pa.array(-np.arange(offsets[-1]) / 1e6))
    table = pa.table({"log_probs.a": values, "log_probs.b": values})
    sizes = []
    for group in (1, 2, 100):
        path = written(tmp_path / f"{group}.parquet", table, row_group_size=group)
        chunks = list(read(path))
        sizes.append([len(chunk) for chunk in chunks])
        joined = np.concatenate([chunk.log_probs["b"] for chunk in chunks])
        np.testing.assert_array_equal(joined, -np.arange(offsets[-1]) / 1e6)
        assert [int(i) for chunk in chunks for i in chunk.rows] == list(range(9))  # type: ignore[union-attr]
    third = CHUNK_TOKENS // 3
    assert sizes[0] == sizes[1] == sizes[2] == [3 * third, 3 * third, third, 2 * CHUNK_TOKENS, 5]


def test_lists_of_one_list_are_unwrapped_and_others_are_damaged(tmp_path: Path):
    wrapped = {"generation_logprobs": [[-1.0, -2.0]], "prev_logprobs": [[-1.5, -2.5]]}
    rows = [wrapped | {"token_loss_mask": [[0, 1]], "sample_loss_mask": [1]}] * 20
    table = pa.Table.from_pylist(
        [*rows, rows[0] | {"prev_logprobs": [[-1.0, -2.0], [-3.0]]}, rows[0]]
    )
    dump = read(written(tmp_path / "a.parquet", table))
    assert dump.format == "NeMo-RL Parquet"
    (chunk,) = dump
    assert chunk.lengths.tolist() == [2] * 21
    assert chunk.log_probs["old"].tolist() == [-1.5, -2.5] * 21
    assert chunk.mask.tolist() == [False, True] * 21
    assert str(dump.damaged[0]).endswith(
        "row 20: prev_logprobs holds a list of 2, where the first rows hold lists of one"
    )


def test_bytes_and_texts_may_be_dictionaries(tmp_path: Path):
    pieces = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()), pa.array([b"a", None, b"bc"]).dictionary_encode()
    )
    table = pa.table(
        {
            "log_probs.a": [[-1.0, -1.0], [-2.0]],
            "log_probs.b": [[-1.0, -1.0], [-2.0]],
            "token_bytes": pieces,
            "text": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    (chunk,) = read(written(tmp_path / "a.parquet", table))
    assert list(chunk.token_bytes or ()) == [b"a", None, b"bc"]
    assert chunk.text == ["x", "y"]


def test_columns_of_nulls_are_missing_log_probs(tmp_path: Path):
    table = pa.table(
        {"log_probs.a": [[-1.0]], "log_probs.b": pa.nulls(1), "top_ids.a": [[None]]}
        | {"top_log_probs.a": pa.array([[None]]), "tokens": [[3]]}
    )
    (chunk,) = read(written(tmp_path / "a.parquet", table))
    np.testing.assert_array_equal(chunk.log_probs["b"], [np.nan])
    assert chunk.top_k == {}


def test_text_that_is_not_utf8_is_replaced(tmp_path: Path):
    text = pa.array([b"a\xff"]).view(pa.string())
    table = pa.table({"log_probs.a": [[-1.0]], "log_probs.b": [[-1.0]], "text": text})
    (chunk,) = read(written(tmp_path / "a.parquet", table))
    assert chunk.text == ["a\ufffd"]


def test_a_file_that_breaks_off_is_one_sentence(tmp_path: Path):
    table = pa.table({"log_probs.a": [[-1.0]] * 999, "log_probs.b": [[-1.0]] * 999})
    path = written(tmp_path / "a.parquet", table)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(DumpError, match=r"a\.parquet cannot be read as Parquet \("):
        read(path)
    path.write_bytes(whole[:4] + bytes(300) + whole[304:])
    with pytest.raises(DumpError, match=r"a\.parquet cannot be read as Parquet \("):
        list(read(path))


def test_two_columns_of_one_name_are_refused(tmp_path: Path):
    lists = pa.array([[-1.0]])
    table = pa.Table.from_arrays([lists, lists], names=["log_probs.a", "log_probs.a"])
    with pytest.raises(DumpError, match=r"has two columns named log_probs\.a"):
        read(written(tmp_path / "a.parquet", table))


def test_log_probs_without_lists_are_not_taken(tmp_path: Path):
    table = pa.table({"log_probs.a": [-1.0], "log_probs.b": [-1.0]})
    with pytest.raises(DumpError, match="log-probs of none"):
        read(written(tmp_path / "a.parquet", table))


FLIPS = """
import sys
from pathlib import Path
import kullback as kb

path = Path(sys.argv[1])
whole = path.read_bytes()
size = int.from_bytes(whole[-8:-4], "little")
refused = 0
for place in range(len(whole) - 8 - size, len(whole), 2):
    for bit in (1, 4):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        try:
            list(kb.read(path))
        except ValueError:
            refused += 1
print(refused)
"""


def test_no_flipped_bit_of_the_footer_ends_the_process(tmp_path: Path):
    """pyarrow aborts where a damaged footer is asked for the metadata of a column."""
    table = pa.table({f"log_probs.{role}": [[-1.0, -2.0], [], None, [-3.0]] for role in "ab"})
    path = written(tmp_path / "a.parquet", table, compression="none")
    done = subprocess.run(
        [sys.executable, "-c", FLIPS, path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 300


def test_rows_that_do_not_come_are_missed(tmp_path: Path):
    """pyarrow 26 gives fewer rows than there are, where a row group begins with an empty page."""
    rows = [[-1.0] * (i % 4) for i in range(19)]
    path = written(
        tmp_path / "a.parquet",
        pa.table({"log_probs.a": rows, "log_probs.b": rows}),
        row_group_size=1,
        data_page_size=1,
    )
    if pq.read_table(path).num_rows == 19:
        assert sum(len(chunk.lengths) for chunk in read(path)) == 19
    else:
        with pytest.raises(DumpError, match="says that it holds 19 rows, and 0 could be read"):
            list(read(path))


def test_rows_are_read_in_bounded_portions(tmp_path: Path, monkeypatch):
    """By the first rows where values compress to nothing, by the size of the file elsewhere."""
    monkeypatch.setattr(parquet, "DECODED_AT_ONCE", 2**12)
    random = np.random.default_rng(0)
    constant = [[-1.0] * 100] * 500
    late = [[-1.0]] * 20 + [(-random.exponential(size=100)).tolist() for _ in range(480)]
    for rows, most in (
        (constant, 20),
        (pa.array(constant, pa.list_(pa.float32(), 100)), 20),
        (late, 41),
    ):
        path = written(tmp_path / "a.parquet", pa.table({"log_probs.a": rows, "log_probs.b": rows}))
        with parquet._opened(str(path)) as file:
            at_once = parquet._rows_at_once(file, str(path), ["log_probs.a", "log_probs.b"])
        assert 2 <= at_once <= most
        assert sum(len(chunk.lengths) for chunk in read(path)) == 500
