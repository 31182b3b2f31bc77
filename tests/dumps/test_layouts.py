"""One batch in every layout: the same columns, and the same numbers to the last bit."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

import kullback as kb
from kullback.columns import Columns
from kullback.dumps import read
from kullback.dumps.chunks import CHUNK_TOKENS

Row = dict[str, Any]
PER_TOKEN = (
    *("tokens", "mask", "token_bytes", "log_probs.rollout", "log_probs.old", "entropy.rollout"),
    *("KL(rollout||old)", "versions", "top_ids.rollout", "top_log_probs.rollout"),
)
LABELS = ("task", "good", "reward")
ROLES = ("log_probs.rollout", "log_probs.old")


def batch(lengths: list[int]) -> list[Row]:
    """Sequences with everything that a dump can say of them, gaps included."""
    random = np.random.default_rng(3)
    rows = []
    for i, n in enumerate(lengths):
        old = np.float32(-random.exponential(size=n)).astype(float)
        rollout = np.float32(old - random.exponential(0.1, size=n)).astype(float)
        heads = np.float32(-np.sort(random.exponential(size=(n, 3)))).astype(float)
        rows.append(
            {
                "log_probs.rollout": rollout.tolist(),
                "log_probs.old": [None if j % 7 == 5 else x for j, x in enumerate(old.tolist())],
                "mask": (random.random(n) < 0.9).tolist(),
                "tokens": random.integers(0, 50000, n).tolist(),
                "token_bytes": [None if j % 5 == 4 else [97 + j % 26, 32] for j in range(n)],
                "entropy.rollout": (-heads).mean(1).tolist(),
                "KL(rollout||old)": ((rollout - old) ** 2).tolist(),
                "versions": [i // 4] * n,
                "top_ids.rollout": random.integers(0, 50000, (n, 3)).tolist(),
                "top_log_probs.rollout": heads.tolist(),
                "top_k.rollout": 2,
                "prompt_id": f"prompt {i // 2}",
                "step": 5 + i // 8,
                "text": f"text é {i}",
                "sampling.temperature": 0.7,
                "sampling.log_probs": "raw",
                "task": "sum" if i % 3 else "count",
                "good": i % 4 == 1,
                "reward": i / 4,
            }
        )
    return rows


def packed(rows: list[Row], cut: str) -> list[Row]:
    """Five sequences to a row, end to end; what holds for all of them once."""
    found = []
    for first in range(0, len(rows), 5):
        some = rows[first : first + 5]
        row: Row = {}
        for name in rows[0]:
            each = [one[name] for one in some]
            row[name] = [x for one in each for x in one] if name in PER_TOKEN else each
            if name in SHARED:
                row[name] = each[0]
        lengths = lengths_of(some)
        row[cut] = lengths if cut == "lengths" else [0, *np.cumsum(lengths).tolist()]
        found.append(row)
    return found


def long(rows: list[Row], sequence: str = "sequence", position: bool = True) -> list[Row]:
    """A row per token; ids that do not ascend."""
    found = []
    for i, one in enumerate(rows):
        whole = {name: value for name, value in one.items() if name not in PER_TOKEN}
        for j in range(len(one["tokens"])):
            row = {sequence: f"s{i * 7 % 31}"} | ({"position": j} if position else {}) | whole
            found.append(row | {name: one[name][j] for name in one if name in PER_TOKEN})
    return found


def numpy(rows: list[Row]) -> dict[str, Any]:
    """Flat arrays; there are no bytes of tokens in NPZ."""
    arrays: dict[str, Any] = {}
    for name in rows[0]:
        if name in PER_TOKEN:
            values = [x for one in rows for x in one[name]]
            arrays[name] = np.array(values, None if name in WHOLE else float)
        else:
            arrays[name] = np.array([one[name] for one in rows])
    return arrays | {name: one[0] for name, one in arrays.items() if name in SHARED}


SHARED = ("top_k.rollout", "sampling.temperature", "sampling.log_probs")
WHOLE = ("mask", "tokens", "versions", "top_ids.rollout")


def lengths_of(rows: list[Row]) -> list[int]:
    return [len(one["tokens"]) for one in rows]


def padded(rows: list[Row]) -> dict[str, Any]:
    flat, lengths = numpy(rows), np.array(lengths_of(rows))
    there = np.arange(max(lengths)) < lengths[:, None]
    for name in set(PER_TOKEN) & set(flat):
        wide = np.zeros((*there.shape, *flat[name].shape[1:]), flat[name].dtype)
        wide[there] = flat[name]
        flat[name] = wide
    return flat | {"lengths": lengths}


def table(rows: list[Row]) -> pa.Table:
    """The rows with bytes as Arrow has them."""

    def bytes_of(value: Any) -> Any:
        if value and isinstance(value[0], int):
            return bytes(value)
        return None if value is None else [bytes_of(one) for one in value]

    found = {name: [row[name] for row in rows] for name in rows[0]}
    if "token_bytes" in found:
        found["token_bytes"] = [bytes_of(one) for one in found["token_bytes"]]
    return pa.table(found)


def recast(whole: pa.Table, list_of: Callable[[pa.DataType], pa.DataType]) -> pa.Table:
    for i, field in enumerate(whole.schema):
        if pa.types.is_list(field.type):
            column = pa.array(whole.column(i).to_pylist(), list_of(field.type.value_type))
            whole = whole.set_column(i, field.name, column)
        elif pa.types.is_string(field.type):
            whole = whole.set_column(i, field.name, whole.column(i).dictionary_encode())
    return whole


def json_lines(rows: list[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet(whole: pa.Table, path: Path, **options: Any) -> None:
    pq.write_table(whole, path, **options)


def arrow(whole: pa.Table, path: Path, opened: Any, rows: int) -> None:
    with opened(path, whole.schema) as writer:
        writer.write_table(whole, max_chunksize=rows)


# Every way to write the rows to a path.
LAYOUTS: dict[str, Callable[[list[Row], Path], Any]] = {
    "parquet": lambda rows, path: parquet(table(rows), path),
    "parquet, row groups": lambda rows, path: parquet(table(rows), path, row_group_size=3),
    "parquet, large lists": lambda rows, path: parquet(recast(table(rows), pa.large_list), path),
    "jsonl": lambda rows, path: path.write_bytes(json_lines(rows)),
    "jsonl.gz": lambda rows, path: path.write_bytes(gzip.compress(json_lines(rows))),
    "jsonl.zst": lambda rows, path: path.write_bytes(
        pa.Codec("zstd").compress(json_lines(rows), asbytes=True)
    ),
    "arrow file": lambda rows, path: arrow(table(rows), path, ipc.new_file, 4),
    "arrow stream": lambda rows, path: arrow(table(rows), path, ipc.new_stream, 100),
    "arrow list views": lambda rows, path: arrow(
        recast(table(rows), pa.list_view), path, ipc.new_file, 9
    ),
    "packed parquet": lambda rows, path: parquet(table(packed(rows, "lengths")), path),
    "packed parquet, sums": lambda rows, path: parquet(table(packed(rows, "cu_seqlens")), path),
    "packed arrow": lambda rows, path: arrow(
        table(packed(rows, "cu_seq_lens")), path, ipc.new_stream, 2
    ),
    "packed jsonl": lambda rows, path: path.write_bytes(json_lines(packed(rows, "lengths"))),
    "long parquet": lambda rows, path: parquet(table(long(rows)), path),
    "long parquet, groups": lambda rows, path: parquet(table(long(rows)), path, row_group_size=7),
    "long arrow": lambda rows, path: arrow(
        recast(table(long(rows, "seq_id", False)), pa.list_), path, ipc.new_file, 13
    ),
    "long jsonl": lambda rows, path: path.write_bytes(json_lines(long(rows, "sequence_id"))),
    "npz, flat": lambda rows, path: saved(numpy(rows) | {"lengths": lengths_of(rows)}, path),
    "npz, sums": lambda rows, path: saved(
        numpy(rows) | {"cu_seqlens": np.cumsum([0, *lengths_of(rows)])}, path
    ),
    "npz, padded": lambda rows, path: saved(padded(rows), path, np.savez_compressed),
}


def saved(arrays: dict[str, Any], path: Path, save: Any = np.savez) -> None:
    with path.open("wb") as file:
        save(file, **arrays)


# What only tells where a token stands; a row is another thing in each layout.
PLACES = ("row", "rows", "sequence", "where")


Read = tuple[list[Columns], Any]


def columns_and_report(rows: list[Row], layout: str, folder: Path) -> Read:
    """What is read from a file of one name, in a folder of its own: a path tells clusters apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        LAYOUTS[layout](rows, Path("dump"))
        labels = [name for name in LABELS if name in rows[0]]
        dump = read("dump", labels=labels)
        made = kb.report(kb.summarize(dump, by=[*labels, "length", "position"]), "report.json")
        assert dump.damaged == []
        assert dump.rows == len(rows)
        # How many sequences share a row is what the layouts differ in.
        made["checks"] = [one for one in made["checks"] if one["code"] != "packed-boundary"]
        return list(dump), without_places(made)


@pytest.fixture(scope="module")
def read_from(tmp_path_factory) -> Callable[[str, Callable[..., list[Row]], tuple[Any, ...]], Read]:
    """What is read of the rows that something makes, from a layout: once, for many are compared."""

    @cache
    def found(layout: str, made: Callable[..., list[Row]], of: tuple[Any, ...]) -> Read:
        return columns_and_report(made(*of), layout, tmp_path_factory.mktemp("layout"))

    return found


def without_places(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_places(one) for key, one in value.items() if key not in PLACES}
    if isinstance(value, str):
        return re.sub(r"row \d+, (sequence \d+, )?", "", value)
    return [without_places(one) for one in value] if isinstance(value, list) else value


def assert_same(one: Columns, other: Columns) -> None:
    for name in ("lengths", "mask", "clusters", "tokens", "versions"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    for name in ("log_probs", "entropy", "exact", "labels"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert ours.keys() == theirs.keys()
        for key in ours:
            np.testing.assert_array_equal(ours[key], theirs[key], key)
            assert ours[key].dtype == theirs[key].dtype
    for ours, theirs in zip(one.top_k["rollout"], other.top_k["rollout"], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert one.cluster_kind == other.cluster_kind
    assert list(one.text or ()) == list(other.text or ())
    assert list(one.token_bytes or ()) == list(other.token_bytes or ())


LENGTHS = (3, 17, 1, 40, 8, 12, 5, 30, 2, 9, 21)


def batch_without(lengths: tuple[int, ...], *gone: str) -> list[Row]:
    return [
        {name: one for name, one in row.items() if name not in gone} for row in batch([*lengths])
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("without", [(), ("prompt_id",)], ids=["prompts", "no prompts"])
def test_a_batch_is_the_same_in_every_layout(read_from, layout: str, without):
    # A row per token cannot hold a sequence of none; NPZ has no bytes of tokens.
    lengths = LENGTHS if layout.startswith("long") else (*LENGTHS[:5], 0, *LENGTHS[5:])
    gone = (*without, "token_bytes") if layout.startswith("npz") else without
    reference = "jsonl" if layout != "jsonl" else "parquet"
    (one,), expected = read_from(reference, batch_without, (lengths, *gone))
    (other,), found = read_from(layout, batch_without, (lengths, *gone))
    assert other.lengths.tolist() == [*lengths]
    assert_same(one, other)
    assert found == expected


@pytest.mark.parametrize("layout", ["packed parquet", "packed jsonl", "long parquet", "npz, flat"])
def test_chunks_are_the_same_in_every_layout(read_from, layout: str):
    lengths = (*[CHUNK_TOKENS // 3] * 4, 5, CHUNK_TOKENS + 2, 7)
    ours, expected = read_from("parquet", plain_rows, lengths)
    theirs, found = read_from(layout, plain_rows, lengths)
    sizes = [len(chunk) for chunk in theirs]
    assert sizes == [len(chunk) for chunk in ours]
    assert sizes == [CHUNK_TOKENS // 3 * 3, CHUNK_TOKENS // 3 + 5, CHUNK_TOKENS + 2, 7]
    assert found == expected


def plain_rows(*lengths: int) -> list[Row]:
    rows = []
    for n in lengths:
        logged = -np.random.default_rng(n).exponential(size=(2, n)).astype(np.float32).astype(float)
        values = dict(zip(ROLES, logged.tolist(), strict=True))
        rows.append(values | {"tokens": list(range(n)), "prompt_id": n})
    return rows


@pytest.mark.parametrize("layout", ["fixed parquet", "fixed arrow", "padded npz"])
def test_rows_of_one_width_with_a_mask_are_the_same_in_every_layout(
    tmp_path, monkeypatch, layout: str
):
    names = (*ROLES, "tokens", "mask", "prompt_id", "top_ids.rollout", "top_log_probs.rollout")
    rows = [{name: row[name] for name in names} for row in batch([6] * 8)]
    LAYOUTS_OF_ONE_WIDTH[layout](rows, tmp_path / "fixed")
    (tmp_path / "plain.jsonl").write_bytes(json_lines(rows))
    (one,), (other,) = read(tmp_path / "plain.jsonl"), read(tmp_path / "fixed")
    assert_same(one, other)


def fixed(rows: list[Row]) -> pa.Table:
    """The same with lists of fixed size: 6 tokens, 3 entries of a head."""
    kinds = {name: pa.list_(pa.float64(), 6) for name in ROLES}
    kinds |= {"tokens": pa.list_(pa.int32(), 6), "mask": pa.list_(pa.bool_(), 6)}
    kinds |= {"prompt_id": pa.string(), "top_ids.rollout": pa.list_(pa.list_(pa.int32(), 3), 6)}
    kinds["top_log_probs.rollout"] = pa.list_(pa.list_(pa.float64(), 3), 6)
    return pa.table({name: pa.array([row[name] for row in rows], kinds[name]) for name in rows[0]})


LAYOUTS_OF_ONE_WIDTH: dict[str, Callable[[list[Row], Path], Any]] = {
    "fixed parquet": lambda rows, path: parquet(fixed(rows), path),
    "fixed arrow": lambda rows, path: arrow(fixed(rows), path, ipc.new_file, 3),
    "padded npz": lambda rows, path: saved(
        {name: one for name, one in padded(rows).items() if name != "lengths"}, path
    ),
}
