from __future__ import annotations

import dataclasses
import json
import os
import pickle
import zlib
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.estimation import stored
from kullback.estimation.stored import DAMAGED, DIGEST, MAGIC, load, store
from kullback.estimation.summary import Summary

COLUMNS = kb.read(kb.demo_path())
SUMMARY = kb.summarize(COLUMNS, by=["position"])


def same(a: Any, b: Any) -> bool:
    """To the bit: NaN is NaN, and −0 is not 0."""
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, one.name), getattr(b, one.name)) for one in dataclasses.fields(a)
        )
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return a.tolist() == b.tolist() if a.dtype.kind == "O" else a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return a == b


def odd_batch():
    """Everything that a state can hold: no number, infinities, texts, packed rows, padding."""
    nan, inf = float("nan"), float("inf")
    batch = kb.pack(
        {
            "rollout": [[-40.0, -1.0, -9999.0, 0.0, 0.0], [-1.0, nan, -inf, 0.0, 0.0]],
            "current": [[-1.5, 0.5, -1.0, 0.0, 0.0], [-2.0, -1.0, -1.0, 0.0, 0.0]],
        },
        clusters=["x", "y"],
        exact={"KL(rollout||current)": [[0.1, nan, 0.2, 0.0, 0.0]] * 2},
    )
    return dataclasses.replace(
        batch,
        tokens=np.arange(10),
        entropy={"rollout": np.full(10, 0.5)},
        text=["a\ud83d", None],
        token_bytes=[b"a", None] * 5,
        labels={"task": np.array(["ü", None], object), "step": np.array([1, 2])},
        rows=np.array([3, 4]),
        within=np.array([0, 1]),
        source="ä.jsonl",
    )


@pytest.mark.parametrize(
    "summary",
    [
        SUMMARY,
        SUMMARY + SUMMARY,
        kb.summarize([odd_batch()], by=["task", "step", "length"]),
        kb.summarize([kb.pack({"a": np.zeros((0, 1)), "b": np.zeros((0, 1))})]),
    ],
    ids=["demo", "sum", "odd", "empty"],
)
def test_a_summary_comes_back_to_the_bit(summary: Summary):
    data = store(summary)
    again = load(data)
    assert same(again, summary)
    assert store(again) == data


def test_what_comes_back_can_be_added_to():
    again = load(store(SUMMARY))
    assert same(again + again, SUMMARY + SUMMARY)


@pytest.mark.parametrize("place", [0, len(MAGIC) + 1, len(MAGIC) + DIGEST, -1])
def test_a_flipped_bit_is_seen(place: int):
    data = bytearray(store(SUMMARY))
    data[place] ^= 1
    with pytest.raises(ValueError, match=DAMAGED):
        load(bytes(data))


@pytest.mark.parametrize("size", [0, 10, 40, 1000, -1])
def test_a_part_of_it_is_seen(size: int):
    with pytest.raises(ValueError, match=DAMAGED):
        load(store(SUMMARY)[:size])


class Trap:
    """What a pickle would run."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def test_a_pickle_is_refused_and_runs_nothing(tmp_path):
    harmful = pickle.dumps(Trap(tmp_path / "trap"))
    for data in (harmful, sealed(harmful), MAGIC + harmful):
        with pytest.raises(ValueError, match=DAMAGED):
            load(data)
    assert not (tmp_path / "trap").exists()
    pickle.loads(harmful)
    assert (tmp_path / "trap").exists()  # so much for the trap


def sealed(content: bytes) -> bytes:
    """Content as a stranger can make it, with the right digest."""
    body = zlib.compress(content)
    return MAGIC + blake2b(body, digest_size=DIGEST).digest() + body


def written(tree: Any, arrays: bytes = b"") -> bytes:
    text = json.dumps(tree).encode()
    return sealed(len(text).to_bytes(8, "little") + text + arrays)


def parts() -> tuple[dict[str, Any], bytes]:
    """The tree and the arrays of a true state."""
    content = zlib.decompress(store(SUMMARY)[len(MAGIC) + DIGEST :])
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def test_a_forged_file_builds_what_the_annotations_name_and_nothing_else():
    tree, arrays = parts()
    assert same(load(written(tree, arrays)), SUMMARY)
    forged = [
        {**tree, "cluster_kind": 3},
        {**tree, "cluster_kind": ["prompt"]},
        {**tree, "cluster_kind": None},
        {**tree, "more": 1},
        {key: value for key, value in tree.items() if key != "padding"},
        {**tree, "padding": "padding"},
        {**tree, "questions": {"__reduce__": "os.system"}},
        {**tree, "questions": [1, 2]},
        {**tree, "questions": [[1, 2]]},
        {**tree, "questions": [["KL(a||b)", None]]},
        {**tree, "repeats": {**tree["repeats"], "checked": True}},
        {**tree, "repeats": {**tree["repeats"], "checked": 1.5}},
        {**tree, "repeats": {**tree["repeats"], "sources": [1]}},
        {**tree, "repeats": {**tree["repeats"], "keys": [-1]}},
        {**tree, "repeats": {**tree["repeats"], "keys": [2**62, 2**62]}},
        {**tree, "repeats": {**tree["repeats"], "keys": ["8"]}},
        [],
        None,
        "x",
    ]
    for one in forged:
        with pytest.raises(ValueError, match=DAMAGED):
            load(written(one, arrays))
    for more in (arrays + b"x", arrays[:-1]):
        with pytest.raises(ValueError, match=DAMAGED):
            load(written(tree, more))


def test_nesting_without_end_is_refused():
    text = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(ValueError, match=DAMAGED):
        load(sealed(len(text).to_bytes(8, "little") + text))


def test_a_state_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=DAMAGED):
        load(store(SUMMARY.repeats))
    assert same(load(store(SUMMARY.repeats), type(SUMMARY.repeats)), SUMMARY.repeats)


def test_what_is_no_state_is_not_stored():
    @dataclasses.dataclass
    class Odd:
        value: int

    Odd.__annotations__["value"] = int
    with pytest.raises(TypeError, match="cannot be stored as"):
        store(Odd({1, 2}))  # type: ignore[arg-type]


def test_numbers_of_numpy_are_stored_as_numbers():
    @dataclasses.dataclass
    class Mixed:
        a: float
        b: int
        c: bool

    Mixed.__annotations__.update(a=float, b=int, c=bool)
    again = load(store(Mixed(np.float64(0.1), np.int64(3), np.bool_(True))), Mixed)  # type: ignore[arg-type]
    assert (again.a, again.b, again.c) == (0.1, 3, True)
    assert stored._fields(Mixed) == {"a": float, "b": int, "c": bool}
