from __future__ import annotations

from dataclasses import replace
from math import e

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.estimation.start_state import StartState
from kullback.estimation.terms import BLOCK

NAN = float("nan")
ROWS = {
    "reference": [[-1.0, -2.0], [-1.0, -2.0]],
    "old": [[-1.0, -3.0], [-1.0, -2.0]],
    "current": [[-1.5, -3.0], [-1.0, -2.0]],
}


def batch(step=(0, 5), rows=ROWS, mask=None, **changes) -> Columns:
    columns = pack(rows, mask=mask)
    return replace(columns, labels={"step": np.array(step)}, **changes)


def test_rows_of_the_first_step_are_compared_with_the_reference() -> None:
    state = StartState.of(batch())
    assert state.sequences == {0: 1}
    assert state.pairs.keys() == {(0, "old", "reference"), (0, "current", "reference")}
    one = state.pairs[0, "old", "reference"]
    assert (one.tokens, one.differing, one.total) == (2, 1, 1.0)
    assert one.k3 == pytest.approx(e - 2)
    assert str(one.first) == "row 0, token 1"


def test_engine_and_trainer_are_compared_too() -> None:
    state = StartState.of(batch(rows={"rollout": ROWS["old"], "old": ROWS["current"]}))
    assert state.pairs.keys() == {(0, "old", "rollout")}


def test_steps_may_be_counted_from_one_and_later_ones_are_no_start() -> None:
    assert StartState.of(batch(step=(1, 1))).sequences == {1: 2}
    assert StartState.of(batch(step=(2, 7))) == StartState({}, {})


def test_without_steps_version_0_is_the_start() -> None:
    columns = replace(batch(versions=np.array([0, 0, 0, 1])), labels={})
    assert StartState.of(columns).sequences == {0: 1}
    assert StartState.of(replace(columns, versions=None)).sequences == {}
    assert StartState.of(batch(step=(3, 3), versions=np.zeros(4, int))).sequences == {}


def test_only_tokens_that_count_for_both_are_compared() -> None:
    rows = {"reference": [[-1.0, -2.0, -3.0]], "old": [[NAN, -2.5, -9.0]]}
    state = StartState.of(batch(step=(0,), rows=rows, mask=[[1, 1, 0]]))
    assert state.pairs[0, "old", "reference"].tokens == 1
    assert state.pairs[0, "old", "reference"].total == 0.5


def test_the_first_tokens_of_a_batch_stand_for_all() -> None:
    rows = {"reference": np.full((2, BLOCK), -1.0), "old": np.full((2, BLOCK), -2.0)}
    assert StartState.of(batch(step=(0, 0), rows=rows)).pairs[0, "old", "reference"].tokens == BLOCK
