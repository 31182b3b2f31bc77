from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.diagnosis.soundness import is_sound, scored, unfit
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, Mixture

LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](64))
PAIR = Question("rollout", "reference")


def with_reference(change):
    columns = LOOP.sample(np.random.default_rng(0))
    changed = change(columns.log_probs["reference"], columns)
    return summarize([replace(columns, log_probs={**columns.log_probs, "reference": changed})])


def zeros(values, columns):
    return np.where(columns.position_of_token < 4, 0.0, values)


def sums(values, columns):
    return np.cumsum(values) - np.repeat(np.cumsum(values)[columns.starts], columns.lengths) - 1.0


def bits(values, columns):
    return values / np.log(2)


def gaps(values, columns):
    return np.where(columns.position_of_token == 3, np.nan, values)


def test_honest_columns_are_sound():
    summary = with_reference(lambda values, columns: values)
    assert scored(summary, "reference")
    assert is_sound(summary, "reference")
    assert unfit(summary, PAIR) == ""


@pytest.mark.parametrize("change", [zeros, sums, bits])
def test_what_is_no_log_prob_is_used_by_no_test(change):
    summary = with_reference(change)
    assert not scored(summary, "reference")
    assert "the column of reference is not its log-probs" in unfit(summary, PAIR)
    assert unfit(summary, Question("rollout", "old")) == ""


def test_gaps_may_be_a_selection():
    assert "infinite or missing" in unfit(with_reference(gaps), PAIR)
