"""Lists, texts and bytes in every layout that Arrow has for them, nulls and slices included."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kullback.dumps.arrow_lists import batch_of, columns
from kullback.dumps.batch import Use
from kullback.dumps.layout import Held
from kullback.dumps.ragged import Ragged

ROWS = [[-1.0, -2.0], None, [-3.0, None]]
FLOAT = pa.float32()
KINDS = [
    pa.list_(FLOAT),
    pa.large_list(FLOAT),
    pa.list_(FLOAT, 2),
    pa.list_view(FLOAT),
    pa.large_list_view(FLOAT),
]
NAMES = ["list", "large", "fixed", "view", "large view"]


def only(array: pa.Array, part: str, held: Held) -> Ragged:
    (value,) = batch_of(pa.record_batch({"x": array}), [Use(part, "x", held)], 0).values
    return value


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_lists_of_every_layout_are_the_same_lists(kind: pa.DataType):
    array = pa.array([[0.0, 0.0], *ROWS, [9.0, 9.0]], kind)
    held = columns("", pa.schema({"x": kind}))["x"]
    assert held == Held(1, "number")
    for piece in (pa.array(ROWS, kind), array.slice(1, 3)):
        lists = only(piece, "log_probs.a", held)
        assert lists.known.tolist() == [True, False, True]
        assert lists.lengths.tolist() == [2, 0, 2]
        np.testing.assert_array_equal(lists.values, np.array([-1, -2, -3, np.nan], np.float32))
        assert lists.values.dtype == np.float32


@pytest.mark.parametrize("inner", KINDS, ids=NAMES)
@pytest.mark.parametrize("outer", [pa.list_, lambda kind: pa.list_(kind, 2), pa.list_view])
def test_lists_of_lists_mix_the_layouts(inner: pa.DataType, outer):
    rows = [[[1.0, 2.0], None], None, [[3.0, 4.0], [5.0, 6.0]]]
    kind = outer(inner)
    held = columns("", pa.schema({"x": kind}))["x"]
    assert held == Held(2, "number")
    lists = only(pa.array([*rows, None], kind).slice(0, 3), "top_log_probs.a", held)
    assert lists.lengths.tolist() == [2, 0, 2]
    assert lists.values.lengths.tolist() == [2, 0, 2, 2]
    assert lists.values.known.tolist() == [True, False, True, True]
    assert lists.values.values.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("dictionary", [False, True])
def test_texts_of_every_layout_are_texts(kind: pa.DataType, dictionary: bool):
    array = pa.array(["a", None, "é"], kind)
    if dictionary:
        array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), array)
    held = columns("", pa.schema({"x": array.type}))["x"]
    assert held == Held(0, "text")
    assert only(array, "text", held) == ["a", None, "é"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_bytes_of_every_layout_are_bytes(kind: pa.DataType):
    array = pa.array([[b"x"], [b"a", None, b"bcd"]], pa.list_(kind)).slice(1)
    held = columns("", pa.schema({"x": array.type}))["x"]
    assert held == Held(1, "bytes")
    assert list(only(array, "token_bytes", held).values) == [b"a", None, b"bcd"]


def test_bytes_hidden_behind_a_null_are_not_shown():
    kind = pa.binary()
    hidden = pa.Array.from_buffers(
        kind,
        3,
        [
            pa.py_buffer(bytes([0b101])),
            pa.py_buffer(np.array([0, 1, 3, 4], np.int32).tobytes()),
            pa.py_buffer(b"axxb"),
        ],
    )
    table = pa.record_batch({"t": pa.ListArray.from_arrays([0, 3], hidden)})
    batch = batch_of(table, [Use("token_bytes", "t", Held(1, "bytes"))], 0)
    assert list(batch.values[0].values) == [b"a", None, b"b"]
    assert batch.values[0].values.joined(0, 3) == b"ab"
