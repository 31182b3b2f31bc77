"""Packed lists: keeping rows, filling nulls, and bytes that stay in one buffer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.dumps.ragged import Ragged, Runs, TokenBytes, end_to_end, part, starts

LISTS = st.lists(st.none() | st.lists(st.integers(-5, 5), max_size=4), max_size=6)


def unpacked(ragged: Ragged) -> list[list[int] | None]:
    ends = np.cumsum(ragged.lengths)
    pairs = zip(ends, ragged.lengths, ragged.known, strict=True)
    values = ragged.values.tolist()
    return [[int(v) for v in values[end - n : end]] if known else None for end, n, known in pairs]


def spelled(pieces: list[bytes | None]) -> TokenBytes:
    lengths = np.array([len(one or b"") for one in pieces], dtype=np.int64)
    data = np.frombuffer(b"".join(one or b"" for one in pieces), np.uint8)
    return TokenBytes(data, starts(lengths), np.array([one is not None for one in pieces], bool))


@given(LISTS, st.data())
@settings(derandomize=True)
def test_keeping_rows_keeps_their_lists(rows, data):
    chosen = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    packed = Ragged.of([None if row is None else np.array(row) for row in rows])
    kept = packed.keep(np.array(chosen, dtype=bool))
    assert unpacked(kept) == [row for row, keep in zip(rows, chosen, strict=True) if keep]


def test_a_null_list_is_filled_to_the_length_of_its_row():
    packed = Ragged.of([np.array([1.0]), None, np.array([2.0, 3.0])])
    filled = packed.filled(np.array([1, 2, 2]), np.nan)
    np.testing.assert_array_equal(filled, [1, np.nan, np.nan, 2, 3])


@given(st.lists(st.none() | st.binary(max_size=3), max_size=8), st.data())
@settings(derandomize=True)
def test_token_bytes_are_the_list_they_were_made_of(pieces, data):
    whole = spelled(pieces)
    assert list(whole) == pieces
    assert whole[1:] == pieces[1:]
    assert whole.joined(0, len(pieces)) == b"".join(one or b"" for one in pieces)
    chosen = data.draw(st.lists(st.booleans(), min_size=len(pieces), max_size=len(pieces)))
    kept = whole.keep(np.array(chosen, dtype=bool))
    assert list(kept) == [one for one, keep in zip(pieces, chosen, strict=True) if keep]
    spread = whole.spread(np.arange(len(pieces)) * 2, 2 * len(pieces))
    assert list(spread) == [one for piece in pieces for one in (piece, None)]


def test_token_bytes_count_from_the_end_and_know_their_bounds():
    whole = spelled([b"a", None])
    assert (whole[-2], whole[-1]) == (b"a", None)
    with pytest.raises(IndexError):
        whole[2]


@given(LISTS, st.integers(0, 6), st.integers(0, 6))
@settings(derandomize=True)
def test_parts_end_to_end_are_the_whole(rows, i, j):
    first, last = sorted((min(i, len(rows)), min(j, len(rows))))
    packed = Ragged.of([None if row is None else np.array(row, dtype=float) for row in rows])
    pieces = [packed.part(0, first), packed.part(first, last), packed.part(last, len(rows))]
    assert unpacked(pieces[1]) == rows[first:last]
    assert unpacked(end_to_end(pieces)) == rows


@given(st.lists(st.none() | st.binary(max_size=3), max_size=8), st.integers(0, 8))
@settings(derandomize=True)
def test_parts_of_token_bytes_end_to_end_are_the_whole(pieces, cut):
    whole, cut = spelled(pieces), min(cut, len(pieces))
    parts = [part(whole, 0, cut), part(whole, cut, len(pieces))]
    assert list(parts[1]) == pieces[cut:]
    assert list(end_to_end(parts)) == pieces


VALUES = st.lists(st.sampled_from([None, float("nan"), 1, "a"]), max_size=12)


@given(VALUES, st.integers(0, 12), st.integers(0, 12))
@settings(derandomize=True)
def test_runs_are_the_values_they_were_made_of(values, i, j):
    runs = Runs.of(values, np.ones(len(values), dtype=np.int64))
    first, last = sorted((min(i, len(values)), min(j, len(values))))
    pieces = [runs.part(0, first), runs.part(first, last), runs.part(last, len(values))]
    for one, expected in ((runs, values), (pieces[1], values[first:last])):
        assert len(one) == len(expected)
        assert repr([one.values[k] for k in one.run_of(np.arange(len(one)))]) == repr(expected)
    whole = end_to_end(pieces)
    assert (repr(whole.values), whole.lengths.tolist()) == (
        repr(runs.values),
        runs.lengths.tolist(),
    )
    assert (runs.lengths > 0).all()
    assert all(repr(a) != repr(b) for a, b in pairwise(runs.values))
