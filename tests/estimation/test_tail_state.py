from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns, Place, pack
from kullback.estimation.padding_state import Runs
from kullback.estimation.tail_state import Tail, TailState


def batch(tokens: list[list[int]], mask=None) -> Columns:
    shape = np.shape(tokens)
    values = -1.0 - 0.25 * np.arange(np.prod(shape)).reshape(shape)
    return replace(pack({"old": values, "new": 2 * values}, mask=mask), tokens=np.ravel(tokens))


ROWS = [[5, 9, 9, 9, 9], [7, 7, 7, 5, 6], [5, 8, 8, 6, 5], [4, 4, 4, 4, 4]]
STATE = TailState.of(batch(ROWS))


def gain(*log_p: float) -> float:
    return float(sum(np.log((1 + np.exp(v)) / 2) - v for v in log_p))


def test_runs_of_one_id_are_told_by_their_side_and_what_bets_on_them_win() -> None:
    assert set(STATE.tails) == {("end", 9), ("begin", 7), ("begin", 4), ("end", 4)}
    tail = STATE.tails["end", 9]
    assert (tail.runs.sequences, tail.runs.tokens, tail.runs.widths) == (1, 4, {5})
    assert tail.gains == pytest.approx({"old": gain(-1.75, -2.0), "new": gain(-3.5, -4.0)})
    assert tail.runs.places == (Place("", 0, 1),)


def test_an_end_is_that_of_what_is_counted() -> None:
    mask = np.ones((1, 6), dtype=bool)
    mask[0, [0, 5]] = False
    assert set(TailState.of(batch([[7, 9, 9, 8, 8, 8]], mask)).tails) == {("begin", 9), ("end", 8)}


def test_a_sequence_that_is_nothing_else_is_not_padded() -> None:
    assert STATE.tails["end", 4].runs.shapes == Counter({(5, 5): 1})
    assert STATE.tails["end", 4].runs.sequences == 0


def test_runs_that_stop_are_counted() -> None:
    assert (STATE.stopped("end", 8), STATE.stopped("end", 7), STATE.stopped("end", 9)) == (1, 1, 0)


def test_what_is_masked_is_no_run_and_without_ids_there_is_none() -> None:
    assert TailState.of(batch([[5, 9, 9]], [[1, 1, 0]])).tails == {}
    assert TailState.of(replace(batch(ROWS), tokens=None)) == TailState({}, Counter())


def test_what_was_not_logged_wins_nothing() -> None:
    columns = batch([[5, 9, 9, 9, 9]])
    old = np.array([-1.0, -1, -1, np.nan, -np.inf])
    tail = TailState.of(replace(columns, log_probs={"old": old})).tails["end", 9]
    assert tail == Tail(Runs(Counter({(5, 4): 1}), (Place("", 0, 1),)), {"old": 0.0})


def test_states_add() -> None:
    columns = batch(ROWS)
    parts = [TailState.of(columns.take(slice(i, i + 1))) for i in range(4)]
    assert parts[0] + (parts[1] + (parts[2] + parts[3])) == STATE
    assert TailState.of(columns.take(slice(0, 0))) + STATE == STATE
