from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.estimation.ratios import log_ratios
from kullback.estimation.rejection_state import STATISTICS, Kept, RejectionState
from kullback.question import Question

ASKED = Question("old", "new")


def state_of(columns: Columns, question: Question) -> RejectionState:
    return RejectionState.of(columns, question, log_ratios(columns, [question])[question])


def batch(log_r: list[list[float]], mask: list[list[int]] | None = None) -> Columns:
    old = np.full(np.shape(log_r), -3.0)
    return pack({"old": old, "new": old + log_r}, mask=mask)


LOG_R = [[0.5, 2.0, -0.25], [1.0, 1.5, 1.25], [0.25, -0.5, 0.125]]
MASK = [[1, 0, 1], [0, 0, 0], [1, 1, 1]]
STATE = state_of(batch(LOG_R, MASK), ASKED)


def test_holes_are_held_against_the_tokens_that_are_kept() -> None:
    assert (STATE.tokens.low, STATE.tokens.high) == (-0.5, 0.5)
    assert STATE.tokens.masked.total() == 1
    assert STATE.tokens.beyond == (0, 1)


def test_wholly_masked_sequences_are_held_against_the_others() -> None:
    assert tuple(STATE.sequences) == STATISTICS
    for name, low, high in (
        ("sum", -0.125, 0.25),
        ("mean", -0.125 / 3, 0.125),
        ("largest", 0.5, 0.5),
    ):
        part = STATE.sequences[name]
        assert (part.low, part.high) == pytest.approx((low, high))
        assert part.beyond == (0, 1)


def test_the_sums_are_those_of_all_that_is_masked_within() -> None:
    masked = np.array([2.0, 1.0, 1.5, 1.25])
    assert (STATE.count, STATE.k1) == (4, -masked.sum())
    assert STATE.k3 == pytest.approx((np.exp(masked) - 1 - masked).sum())


def test_tokens_before_and_behind_are_prompt_and_padding() -> None:
    state = state_of(batch([[5.0, 0.5, 0.25, 5.0]], [[0, 1, 1, 0]]), ASKED)
    assert (state.count, state.tokens.masked) == (0, Counter())


def test_what_nobody_scored_is_not_rejected() -> None:
    columns = pack({"old": [[-1.0, 0.0, -2.0]], "new": [[-1.5, -3.0, -2.5]]}, mask=[[1, 0, 1]])
    assert state_of(columns, ASKED).count == 0


def test_a_value_in_the_bin_of_an_end_is_within() -> None:
    kept, masked = np.array([-1.0, 1.0]), np.array([1.0001, -1.0001, 1.5, -3.0])
    assert Kept.of(kept, masked).beyond == (1, 1)
    assert Kept.of(kept, np.zeros(0)).beyond == (0, 0)
