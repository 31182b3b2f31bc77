"""The writer: what is read back is what was written, and a file appears whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.clusters import cluster_keys
from kullback.columns import Columns, TopK, pack
from kullback.dumps import DumpError, read, write

VALUES = st.sampled_from([np.nan, -np.inf, -9999.0, 0.0, -0.1, -1.25, -30.0]) | st.floats(
    -50, 0, width=32
)


def drawn(data: Any, size: int, values: st.SearchStrategy[Any]) -> list[Any]:
    return data.draw(st.lists(values, min_size=size, max_size=size))


def some_heads(data: Any, tokens: int, kind: type) -> TopK:
    width = data.draw(st.integers(1, 3))
    ids, log_probs = np.full((tokens, width), -1), np.full((tokens, width), np.nan, dtype=kind)
    for row in range(tokens):
        size = data.draw(st.integers(0, width))
        ids[row, :size] = data.draw(st.permutations(range(5)))[:size]
        log_probs[row, :size] = -np.arange(size) - 0.5
    return TopK(ids, log_probs)


def some_columns(data: Any, kind: type) -> Columns:
    lengths = np.array(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5)))
    tokens, sequences = int(lengths.sum()), len(lengths)

    def floats() -> np.ndarray:
        return np.array(drawn(data, tokens, VALUES), dtype=kind)

    number = st.integers(-(2**40), 2**40)
    ids = drawn(data, sequences, data.draw(st.sampled_from([number, st.text(max_size=3)])))
    labels = {
        "prompt_id": np.array(ids, dtype=np.int64 if isinstance(ids[0], int) else object),
        "step": np.array(drawn(data, sequences, number)),
        "sampling.temperature": np.array(
            drawn(data, sequences, st.floats(0.1, 2) | st.just(np.nan))
        ),
        "sampling.log_probs": np.array(
            drawn(data, sequences, st.none() | st.just("raw")), dtype=object
        ),
    }
    return Columns(
        lengths=lengths,
        mask=np.array(drawn(data, tokens, st.booleans()), dtype=bool),
        log_probs={role: floats() for role in ("rollout", "my.role-2")},
        clusters=cluster_keys(labels["prompt_id"]),
        cluster_kind="prompt",
        entropy={"rollout": floats()},
        top_k={"rollout": some_heads(data, tokens, kind)},
        exact={"KL(rollout||my.role-2)": floats()},
        tokens=np.array(drawn(data, tokens, st.integers(-1, 5)), dtype=np.int64),
        token_bytes=drawn(data, tokens, st.none() | st.binary(max_size=3)),
        text=drawn(data, sequences, st.none() | st.text(max_size=4)),
        versions=np.array(drawn(data, tokens, st.integers(-1, 9)), dtype=np.int64),
        labels=labels,
    )


def assert_same(one: Columns, two: Columns) -> None:
    for name in ("lengths", "mask", "clusters", "tokens", "versions"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for name in ("log_probs", "entropy", "exact"):
        assert getattr(one, name).keys() == getattr(two, name).keys()
        for role, values in getattr(one, name).items():
            np.testing.assert_array_equal(values, getattr(two, name)[role])
    for name, values in one.labels.items():
        if values.dtype.kind == "f":
            np.testing.assert_array_equal(values, two.labels[name])
        else:
            assert values.tolist() == two.labels[name].tolist()
    assert list(one.token_bytes or ()) == list(two.token_bytes or ())
    assert one.text == two.text
    assert one.cluster_kind == two.cluster_kind
    width = two.top_k["rollout"].ids.shape[1]
    assert (one.top_k["rollout"].ids[:, width:] == -1).all()
    np.testing.assert_array_equal(one.top_k["rollout"].ids[:, :width], two.top_k["rollout"].ids)
    np.testing.assert_array_equal(
        one.top_k["rollout"].log_probs[:, :width], two.top_k["rollout"].log_probs
    )


@given(
    st.data(), st.sampled_from([".parquet", ".jsonl"]), st.sampled_from([np.float32, np.float64])
)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_what_is_read_is_what_was_written(tmp_path_factory, data, suffix: str, kind: type):
    columns = some_columns(data, kind)
    path = tmp_path_factory.mktemp("dump") / f"a{suffix}"
    write(columns, path)
    dump = read(path)
    (back,) = dump
    assert_same(columns, back)
    assert dump.damaged == []
    assert dump.unused == {}
    if suffix == ".parquet":
        assert back.log_probs["rollout"].dtype == kind
    # And what was read is written the same from then on.
    again, third = path.with_name(f"b{suffix}"), path.with_name(f"c{suffix}")
    write(dump, again)
    write(read(again), third)
    assert third.read_bytes() == again.read_bytes()


def two_chunks() -> Iterator[Columns]:
    yield pack({"a": [[-1.0, -2.0]], "b": [[-1.5, -2.5]]})
    yield pack({"a": [[-3.0]], "b": [[-3.5]]})


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_several_batches_become_one_file(tmp_path: Path, suffix: str):
    write(two_chunks(), tmp_path / f"a{suffix}")
    (chunk,) = read(tmp_path / f"a{suffix}")
    assert chunk.lengths.tolist() == [2, 1]
    assert chunk.log_probs["b"].tolist() == [-1.5, -2.5, -3.5]
    assert chunk.cluster_kind == "sequence"


def test_prompts_without_an_id_keep_their_grouping(tmp_path: Path, plain):
    row = {"log_probs.a": [-1.0], "log_probs.b": [-2.0]}
    write(
        read(plain("a.jsonl", [row | {"prompt": text} for text in "xyx"])), tmp_path / "b.parquet"
    )
    (chunk,) = read(tmp_path / "b.parquet")
    assert chunk.cluster_kind == "prompt"
    assert chunk.clusters[0] == chunk.clusters[2] != chunk.clusters[1]
    write(chunk, tmp_path / "c.parquet")
    (again,) = read(tmp_path / "c.parquet")
    assert again.clusters.tolist() == chunk.clusters.tolist()


def test_floats_are_stored_apart_and_without_nulls(tmp_path: Path):
    write(two_chunks(), tmp_path / "a.parquet")
    group = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0)
    leaves = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    leaf = leaves["log_probs.a.list.element"]
    assert leaf.compression == "ZSTD"
    assert "BYTE_STREAM_SPLIT" in leaf.encodings
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert not schema.field("log_probs.a").type.value_field.nullable


def test_json_lines_are_plain_json_but_for_minus_infinity(tmp_path: Path):
    write(pack({"a": [[np.nan, -np.inf]], "b": [[-1.0, -2.0]]}), tmp_path / "a.jsonl")
    line = (tmp_path / "a.jsonl").read_text()
    assert '"log_probs.a": [null, -Infinity]' in line
    assert json.loads(line)["mask"] == [True, True]


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, suffix: str):
    target = tmp_path / f"a{suffix}"
    write(two_chunks(), target)
    before = target.read_bytes()

    def broken() -> Iterator[Columns]:
        yield next(two_chunks())
        raise RuntimeError("the source broke off")

    with pytest.raises(RuntimeError):
        write(broken(), target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def labeled(**labels: Any) -> Columns:
    one = pack({"a": [[-1.0]], "b": [[-2.0]]})
    given_labels = {name: np.array([value]) for name, value in labels.items()}
    return Columns(one.lengths, one.mask, one.log_probs, one.clusters, labels=given_labels)


def heavy() -> Columns:
    one = pack({"a": [[-1.0]], "b": [[-2.0]]})
    return Columns(one.lengths, one.mask, one.log_probs, one.clusters, tokens=np.array([2**31]))


@pytest.mark.parametrize(
    ("columns", "name", "said"),
    [
        (labeled(), "a.csv", "a.csv names no format: end it in .parquet or .jsonl"),
        ([], "a.parquet", "there are no sequences to write"),
        ([], "a.jsonl", "there are no sequences to write"),
        (labeled(reward=1.0), "a.parquet", "'reward' has no column in a dump"),
        ([labeled(), labeled(step=1)], "a.parquet", "the batches differ in their columns: step"),
        ([labeled(), labeled(step=1)], "a.jsonl", "the batches differ in their columns: step"),
        (labeled(step=1.5), "a.parquet", "the columns cannot be written as Parquet"),
        (heavy(), "a.parquet", "the columns cannot be written as Parquet"),
        (labeled(), "nowhere/a.parquet", "nowhere/a.parquet cannot be written"),
        (labeled(), "nowhere/a.jsonl", "nowhere/a.jsonl cannot be written"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, columns: Any, name: str, said: str):
    with pytest.raises(DumpError) as error:
        write(columns, tmp_path / name)
    assert said in str(error.value)
    assert list(tmp_path.iterdir()) == []
