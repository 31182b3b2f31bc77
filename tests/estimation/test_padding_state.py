from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

from kullback.columns import Columns, Place, pack
from kullback.estimation.padding_state import NAMED, Inner, PaddingState, Runs

ZERO = ("end", "old", 0.0, None)


def padded(*rows: list[float], mask=None, **other: list[list[float]]) -> Columns:
    roles = {"old": list(rows), **other}
    width = max(len(row) for row in rows)
    full = {role: [row + [0.0] * (width - len(row)) for row in r] for role, r in roles.items()}
    return pack(full, mask=mask)


def test_a_run_is_two_or_more_of_one_value_per_role() -> None:
    rows = [-1.0, -2, 0, 0, 0], [-1.0, -2, -1, -1, 0], [-1.0, 0, 0, 0, 0]
    state = PaddingState.of(padded(*rows))
    assert (state.sequences, state.widths) == (3, {5: 3})
    (runs,) = state.runs.values()
    assert state.runs == {ZERO: Runs(Counter([(5, 3), (5, 4)]), (Place("", 0, 2), Place("", 2, 1)))}
    assert (runs.sequences, runs.tokens, runs.widths) == (2, 7, {5})


def test_each_role_has_runs_of_its_own() -> None:
    """A trainer may score padding, so that only the engine's values are constant there."""
    state = PaddingState.of(padded([-1.0, 0, 0, 0], new=[[-1.0, -0.1, -0.2, -0.3]]))
    assert [(kind[1], one.tokens) for kind, one in state.runs.items()] == [("old", 3)]


@pytest.mark.parametrize("value", [0.0, -1.0, -1e10, -11.3])
@pytest.mark.parametrize("side", ["begin", "end"])
def test_padding_may_be_any_constant_on_either_side(side, value) -> None:
    row = [-0.5, -0.7, value, value, value]
    rows = [row if side == "end" else row[::-1], [-0.1, -0.2, -0.3, -0.4, -0.6]]
    (kind,) = PaddingState.of(pack({"old": rows})).runs
    assert kind == (side, "old", value, None)


def test_where_ids_are_logged_a_run_is_one_id() -> None:
    columns = padded([-1.0, 0, 0, 0], [-1.0, -2, 0, 0])
    same = replace(columns, tokens=np.array([5, 9, 9, 9, 6, 7, 9, 9]))
    assert PaddingState.of(same).runs == {
        ("end", "old", 0.0, 9): Runs(Counter([(4, 3), (4, 2)]), (Place("", 0, 1), Place("", 1, 2)))
    }
    loop = replace(columns, tokens=np.array([5, 1, 2, 3, 6, 7, 1, 2]))
    assert not PaddingState.of(loop).runs


def test_what_stands_outside_the_mask_is_no_run() -> None:
    rows = [-1.0, -3, 0, 0], [-1.0, -1.5, 0, 0]
    assert not PaddingState.of(padded(*rows, mask=[[1, 1, 0, 0], [1, 1, 0, 0]])).runs


def test_the_run_of_a_short_sequence_tells_its_length() -> None:
    columns = pack({"old": [-1.0, 0, 0, -1, -1.5, -1, -1, 0]}, lengths=[3, 0, 5])
    state = PaddingState.of(columns)
    assert (state.runs[ZERO].widths, state.widths) == ({3}, {3: 1, 0: 1, 5: 1})


def test_states_add_and_name_the_first_places() -> None:
    values = np.where(np.arange(180) % 6 < 4, 0.0, -np.arange(180.0))
    columns = replace(pack({"old": values}, lengths=[2] * 90), rows=np.arange(90))
    whole = PaddingState.of(columns)
    cuts = ((0, 10), (10, 10), (10, 55), (55, 90))
    parts = [PaddingState.of(columns.take(slice(a, b))) for a, b in cuts]
    assert reduce(add, parts) == parts[0] + (parts[1] + (parts[2] + parts[3])) == whole
    assert whole.runs[ZERO].shapes.total() == 60
    assert whole.runs[ZERO].sequences == 0  # all of them are nothing else
    assert len(whole.runs[ZERO].places) == NAMED


def test_no_sequence_is_the_neutral_element() -> None:
    some = PaddingState.of(padded([-1.0, 0, 0]))
    empty = PaddingState.of(padded([-1.0, 0, 0]).take(slice(0, 0)))
    assert empty + some == some + empty == some


def test_runs_that_stop_again_are_counted_apart() -> None:
    values = [-1.0, -2, -2, -2, -1, -3, -3, -1, -2, -2, -3]
    columns = pack({"old": values}, lengths=[5, 6])
    columns = replace(columns, tokens=np.array([5, 6, 6, 6, 5, 7, 7, 5, 6, 6, 7]))
    state = PaddingState.of(columns)
    assert state.inner == {("old", -2.0, 6): Inner(2, 5)}
    assert state.inner["old", -2.0, 6].repeats == 1
    assert list(state.runs) == [("begin", "old", -3.0, 7)]
    halves = [PaddingState.of(columns.take(slice(i, i + 1))) for i in range(2)]
    assert halves[0] + halves[1] == state
