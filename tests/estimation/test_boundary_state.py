from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns, Place, pack
from kullback.estimation.boundary_state import BoundaryState, borders
from kullback.question import Question

ASKED = Question("old", "new")


def state_of(columns: Columns, question: Question) -> BoundaryState:
    return BoundaryState.of(columns, question, borders(columns))


def batch(log_r: list[float], lengths: list[int]) -> Columns:
    old = -3.0 * np.ones(len(log_r))
    return pack({"old": old, "new": old + log_r}, lengths=lengths)


def test_first_tokens_are_told_apart_by_their_place_in_the_row() -> None:
    columns = batch([0.5, 0, -0.25, 0, 1.0, 0, 0], [2, 2, 3])
    columns = replace(columns, rows=np.array([0, 0, 1]), within=np.array([0, 1, 0]))
    state = state_of(columns, ASKED)
    assert (state.rows.tokens, state.packed.tokens, state.inner) == (2, 1, {})
    assert (state.rows.squares, state.rows.fourths) == (1.25, 1.0625)
    assert (state.packed.k1, state.packed.squares) == (0.25, 0.0625)
    assert state.packed.k3 == pytest.approx(np.exp(-0.25) - 0.75)
    assert state.packed.first == Place("", 0, 0, 1)


def test_squares_are_cut() -> None:
    state = state_of(batch([2.9, 0], [2]), ASKED)
    assert (state.rows.squares, state.rows.fourths, state.rows.k1) == (
        4.0,
        16.0,
        pytest.approx(-2.9),
    )


def test_an_id_that_ends_its_row_and_stands_within_is_a_border() -> None:
    columns = replace(
        batch([0, 0, 0.5, 0, 0, 0.25, 0.5], [4, 3]), tokens=np.array([7, 2, 8, 2, 2, 2, 5])
    )
    state = state_of(columns, ASKED)
    assert {name: one.tokens for name, one in state.inner.items()} == {2: 1}
    assert (state.inner[2].k1, state.inner[2].first) == (-0.5, Place("", 0, 2))


def test_what_is_masked_or_not_scored_is_left_out() -> None:
    columns = batch([0.5, 0, np.nan, 0, np.inf, 0], [2, 2, 2])
    assert state_of(columns, ASKED).rows.tokens == 1
    masked = replace(columns, mask=np.array([False, True] * 3))
    assert state_of(masked, ASKED).rows.tokens == 0
