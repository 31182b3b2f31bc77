from __future__ import annotations

import numpy as np
import pytest

import kullback as kb


def test_series_are_reached_by_name():
    log = kb.StepLog.of({"kl": [1.0, 2.0], "loss": [0.0, 0.0]}, steps=[10, 20])
    assert list(log) == ["kl", "loss"]
    assert len(log) == 2
    assert log.steps == 2
    assert len(log["kl"]) == 2
    assert kb.StepLog("x", "CSV", "", {}).steps == 0


def test_two_series_meet_at_the_steps_that_both_have():
    none = np.full(3, np.nan)
    one = kb.Series("a", np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), none)
    other = kb.Series("b", np.array([2.0, 3.0, 4.0]), np.array([20.0, 30.0, 40.0]), none)
    mine, theirs = one.at(other)
    assert (mine.tolist(), theirs.tolist()) == ([2.0, 3.0], [20.0, 30.0])


def test_a_series_is_one_number_for_each_step():
    with pytest.raises(ValueError, match=r"'kl' has the shape \(2, 1\): give one number for each"):
        kb.StepLog.of({"kl": [[1.0], [2.0]]})
    with pytest.raises(ValueError, match="each of the 3 steps"):
        kb.StepLog.of({"kl": [1.0]}, steps=[1, 2, 3])
