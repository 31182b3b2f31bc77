from __future__ import annotations

import numpy as np

import kullback as kb

STEPS = np.arange(100.0)


def told(values, name: str = "kl_coef") -> dict:
    made = kb.judge_log(kb.StepLog.of({name: values, "my_kl": np.full(len(values), 0.5)}))
    return {one.code: one for one in made.findings}


def test_a_coefficient_that_runs_away_is_told():
    """Case 20: multiplied by 1.5 at each step, since the KL stays above twice the target."""
    one = told(0.2 * 1.5 ** np.arange(20.0))["controller-saturated"]
    assert one.severity == "warning"
    assert "(my_kl: about 0.5)" in one.claim
    with np.errstate(over="ignore"):
        overflowed = told((0.2 * np.float32(1.5) ** np.arange(400)).astype(np.float32))
    assert overflowed["controller-saturated"].severity == "error"
    assert "not-finite" in overflowed


def test_one_that_vanishes_is_told():
    """Case 19: noisy negative readings shrink the penalty at full speed."""
    one = told(0.1 * 0.9**STEPS)["controller-saturated"]
    assert "no leash" in one.cost


def test_one_that_settles_or_stands_is_not():
    assert told(np.minimum(0.001 * 1.5**STEPS, 1.0)) == {}
    assert told(np.full(100, 0.1)) == {}
    assert told(0.1 * np.exp(np.cumsum(np.random.default_rng(0).normal(0, 0.1, 100)))) == {}
    assert told(0.2 * 1.5 ** np.arange(5.0)) == {}


def test_one_that_is_0_is_told():
    one = told(np.zeros(30))["penalty-not-used"]
    assert one.numbers["steps"] == 30
    assert told(np.append(np.zeros(30), 0.1)) == {}
