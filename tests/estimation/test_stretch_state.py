from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import SENTINEL, Columns, Place, pack
from kullback.estimation.role_sums import Logged
from kullback.estimation.stretch_state import StretchState

SCORED = -0.25 - np.arange(8.0)


def row(*blank: float) -> list[float]:
    """Two scored tokens, what stands between, and the rest scored again."""
    return [*SCORED[:2], *blank, *SCORED[2 + len(blank) :]]


def batch(*rows: list[float], mask=None) -> Columns:
    columns = pack({"engine": list(rows), "trainer": [SCORED] * len(rows)}, mask=mask)
    return replace(columns, tokens=np.arange(len(columns)))


@pytest.mark.parametrize("blank", [0.0, np.nan, SENTINEL, -1.0, 7.0])
def test_a_stretch_is_three_unscored_tokens_or_more(blank) -> None:
    state = StretchState.of(batch(row(blank, blank, blank), row()), "engine")
    assert (state.runs, state.stretched, state.sequences, state.tokens) == (1, 1, 2, 3)
    assert (state.elsewhere, state.scored) == (0, 13)
    assert state.missing == 3 * np.isnan(blank)
    assert state.sentinel == 3 * (blank == SENTINEL)
    assert state.own == (3 * blank if blank in (-1.0, 7.0) else 0.0)
    assert state.others == {"trainer": Logged(3, SCORED[2:5].sum())}
    assert state.first == Place("", 0, 2)
    assert list(state.kinds.values()) == [1]


def test_a_constant_that_could_be_a_policys_is_none() -> None:
    assert StretchState.of(batch(row(-0.7, -0.7, -0.7)), "engine").runs == 0


def test_what_is_shorter_is_counted_elsewhere() -> None:
    state = StretchState.of(batch(row(0.0, 0.0), row(0.0)), "engine")
    assert (state.runs, state.elsewhere, state.first) == (0, 3, None)


def test_openings_ends_and_what_is_masked_are_no_stretches() -> None:
    opening, closing = [0.0] * 4 + [-1.5] * 4, [-1.5] + [0.0] * 7
    state = StretchState.of(batch(opening, closing), "engine")
    assert (state.runs, state.elsewhere) == (0, 0)
    masked = batch(row(0.0, 0.0, 0.0), mask=[[1, 1, 0, 0, 0, 1, 1, 1]])
    assert StretchState.of(masked, "engine").runs == 0


def test_two_sequences_are_not_one_stretch() -> None:
    columns = pack({"engine": [-1.5, 0, 0, 0, 0, -2.5], "b": [-1.0] * 6}, lengths=[3, 3])
    assert StretchState.of(columns, "engine").runs == 0


def test_states_add() -> None:
    columns = batch(row(0.0, 0.0, 0.0), row(), row(np.nan, np.nan, 0.0), row(0.0))
    whole = StretchState.of(columns, "engine")
    parts = [StretchState.of(columns.take(slice(i, i + 1)), "engine") for i in range(4)]
    assert parts[0] + (parts[1] + (parts[2] + parts[3])) == whole
    assert whole.runs == 2
    assert StretchState.of(columns.take(slice(0, 0)), "engine") + whole == whole
