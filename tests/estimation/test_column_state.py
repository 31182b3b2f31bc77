from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from kullback.columns import pack
from kullback.estimation.column_state import ColumnState

INF, NAN = float("inf"), float("nan")


def of(values, mask=None, dtype="f8", **changes) -> ColumnState:
    columns = pack({"old": np.array(values, dtype=dtype)}, mask=mask)
    return ColumnState.of(replace(columns, **changes), "old")


def test_each_kind_of_value_is_counted_inside_the_mask_only() -> None:
    state = of(
        [[-1.0, 0.5, NAN, -INF, -9999.0, -9999.0], [NAN, -3.0, 2.0, INF, 9.0, -9999.0]],
        mask=[[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 0, 0]],
    )
    assert state.tokens == 9
    assert (state.positive, state.sentinel, state.nan, state.negative_infinite) == (3, 2, 1, 1)
    assert (state.low, state.high) == (-3.0, 2.0)
    assert state.size == 1 + 0.5 + 3 + 2
    assert state.squares == 1 + 0.25 + 9 + 4
    assert state.logged == 5


def test_gaps_at_the_end_are_counted_where_something_stands_before_them() -> None:
    state = of([[-1.0, NAN, -1.0, NAN], [NAN, NAN, NAN, NAN], [NAN, -1.0, -1.0, -1.0]])
    assert (state.nan, state.nan_trailing) == (7, 1)
    assert of([[-1.0, NAN, NAN]], mask=[[1, 1, 0]]).nan_trailing == 1


def test_the_first_place_of_each_fault_is_named() -> None:
    state = of(
        [[NAN, 0.5, NAN], [-INF, -9999.0, 0.5]], mask=[[0, 1, 1], [1, 1, 1]], source="a.parquet"
    )
    assert {fault: str(place) for fault, place in state.first.items()} == {
        "positive": "a.parquet, row 0, token 1",
        "nan": "a.parquet, row 0, token 2",
        "negative_infinite": "a.parquet, row 1, token 0",
        "sentinel": "a.parquet, row 1, token 1",
    }


def test_bfloat16_is_recognized() -> None:
    assert of([[-1.0, -0.5078125, NAN, -9999.0]], dtype="f4").bfloat16
    assert not of([[-1.0, -1 - 2**-8]], dtype="f4").bfloat16
    assert not of([[-1.0, -1 - 2**-20]], dtype="f4").bfloat16
    assert of([[-1e300]]).low == -1e300  # beyond single precision, and no warning
    assert not (of([[-1.0]]) + of([[-1.001]])).bfloat16


def test_tokens_make_a_column_discrete() -> None:
    density, tokens = of([[0.5]]), of([[0.5]], tokens=np.array([7]))
    assert (density.discrete, tokens.discrete) == (False, True)
    assert of([[0.5]], text=["a"]).discrete
    assert (density + tokens).discrete == (tokens + density).discrete


def test_states_add_and_the_first_place_stays_the_first() -> None:
    rows = [
        [0.0, -1.0, NAN, -INF, 0.0],
        [-2.0, 1.5, -9999.0, 0.0, -1.0],
        [NAN, 0.328125, -INF, -9999.0, -7.0],
    ]
    whole = of(rows)
    parts = [of([row], rows=np.array([i])) for i, row in enumerate(rows)]
    assert reduce(add, parts) == parts[0] + (parts[1] + parts[2]) == whole
    backward = parts[2] + (parts[1] + parts[0])
    assert replace(backward, first={}) == replace(whole, first={})
    assert str(backward.first["nan"]) == "row 2, token 0"


def test_the_type_is_named_as_read() -> None:
    single, double = of([[-1.0]], dtype="f4"), of([[-1.0]])
    assert (single.dtype, double.dtype) == ("float32", "float64")
    assert (single + single).dtype == "float32"
    assert (single + double).dtype == "mixed"


def test_no_token_is_no_value() -> None:
    empty = of([[-1.0, NAN]], mask=[[0, 0]])
    assert (empty.tokens, empty.low, empty.high, empty.first) == (0, INF, -INF, {})
    assert replace(empty + of([[-2.0]]), dtype="") == replace(of([[-2.0]]), dtype="")


def test_sizes_that_overflow_are_infinite() -> None:
    state = of([[-1.7e308, -1.7e308]])
    assert (state.low, state.high, state.size) == (-1.7e308, -1.7e308, INF)
    assert (state + of([[-1.0]])).size == INF


def test_the_grid_of_two_batches_is_the_one_on_which_both_stand() -> None:
    eighths, tenths, neither = of([[-1.125, -0.5]]), of([[-1.1, -0.5]]), of([[-1.001, -0.3]])
    assert (eighths + eighths).grid == eighths.grid
    assert tenths.grid == ("1 decimal", 0.1)
    assert (eighths + tenths).grids == {
        "3 decimals": 4e-6,
        "4 decimals": 4e-8,
    }
    assert of([[-9999.0, NAN]]).grid == ("", 0.0)
    assert (neither + of([[1 / 3]])).grid == ("", 0.0)


def test_steps_and_ties_at_the_smallest_are_counted_within_sequences():
    columns = pack({"old": [[-1.0, -3.0, -2.0, np.nan], [-3.0, np.nan, -3.0, -0.5]]})
    state = ColumnState.of(columns, "old")
    assert (state.rises, state.falls) == (2, 1)
    assert (state.low, state.lowest) == (-3.0, 3)
    deeper = ColumnState.of(pack({"old": [[-4.0, -4.0]]}), "old")
    assert ((state + deeper).low, (state + deeper).lowest) == (-4.0, 2)
    assert (state + state).lowest == 6
