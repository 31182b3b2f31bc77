from __future__ import annotations

from math import log

import numpy as np
import pytest

import kullback as kb

STEPS = 60
RNG = np.random.default_rng(0)
KL = 0.02 * np.exp(0.3 * RNG.standard_normal(STEPS))
LENGTH = 200 * np.exp(0.1 * RNG.standard_normal(STEPS))


def judged(**series):
    named = {
        name.replace("__", "/"): np.broadcast_to(v, STEPS).copy() for name, v in series.items()
    }
    return kb.judge_log(kb.StepLog.of(named))


def scale(found):
    made = [one for one in found.findings if one.code == "unit-or-scale"]
    return made[0] if made else None


def passed(found, code: str = "unit-or-scale") -> str:
    return next(one.reason for one in found.diagnosis.checks if one.code == code)


@pytest.mark.parametrize("factor", [2.0, 4.0, 8.0, 0.5, 1 / 16, 1.002 * 4])
def test_a_whole_factor_is_told(factor):
    one = scale(judged(a__kl=KL, b__kl=factor * KL))
    assert one is not None
    assert one.numbers["whole"] == round(max(factor, 1 / factor))
    assert one.accuses


def test_bits_and_signs_are_told():
    assert "bits" in scale(judged(a__kl=KL, b__kl=KL / log(2))).claim  # pyright: ignore
    assert "sign turned" in scale(judged(a__kl=KL, b__kl=-KL)).claim  # pyright: ignore


@pytest.mark.parametrize(
    ("series", "said"),
    [
        ({"a__kl": KL, "b__kl": KL}, "they are one number"),
        ({"a__kl": KL, "b__kl": 2.5 * KL}, "no whole number"),
        ({"a__kl": KL, "kl_sum": 32 * KL}, "one of the names says so"),
        ({"a__kl": KL, "kl_penalty": KL / 5, "kl_coef": 0.2}, "differ by kl_coef"),
        ({"a__kl": KL, "kl_seq": KL * LENGTH, "response_length__mean": LENGTH}, "one is per seq"),
    ],
)
def test_what_may_differ_is_not_accused(series, said):
    found = judged(**series)
    assert scale(found) is None
    assert said in passed(found)


def test_a_coefficient_that_moves_explains_its_penalty():
    coefficient = 0.1 * np.exp(np.cumsum(RNG.normal(0, 0.2, STEPS)))
    found = judged(a__kl=KL, kl_penalty=coefficient * KL, kl_coef=coefficient)
    assert scale(found) is None
    assert "as a penalty and its KL do" in passed(found)
    twice = scale(judged(a__kl=KL, kl_penalty=2 * coefficient * KL, kl_coef=coefficient))
    assert twice is not None
    assert "factor of 2" in twice.claim


def test_length_between_two_of_one_name_is_told():
    one = scale(judged(a__kl=KL, b__kl=KL * LENGTH, response_length__mean=LENGTH))
    assert one is not None
    assert one.certainty == "likely"
    assert "per sequence" in one.claim


def test_a_length_that_stands_still_explains_nothing():
    found = judged(a__kl=KL, b__kl=KL * 200, response_length__mean=200.0)
    assert scale(found) is None


def test_what_the_dictionary_tells_apart_is_not_compared():
    found = kb.judge_log(
        kb.StepLog.of({"actor/kl_loss": KL, "rollout_corr/k3_kl": 2 * KL}), framework="verl"
    )
    assert scale(found) is None


def test_sums_of_k1_and_k3_that_differ_are_told():
    noise = 0.002 * RNG.standard_normal(STEPS)
    names = {"rollout_corr/kl": KL + noise, "rollout_corr/k3_kl": KL}
    assert not kb.judge_log(kb.StepLog.of(names), framework="verl").findings
    holed = names | {"rollout_corr/kl": 1.5 * KL + noise}
    [one] = kb.judge_log(kb.StepLog.of(holed), framework="verl").findings
    assert one.code == "holes-suspected"
    assert one.numbers["ratio"] == pytest.approx(1.5, rel=0.05)
    assert not one.accuses
    doubled = names | {"rollout_corr/kl": 2 * KL + noise / 5}
    [one] = kb.judge_log(kb.StepLog.of(doubled), framework="verl").findings
    assert "Their ratio is 2 ±" in one.claim


def test_what_is_doubled_under_noise_is_told_and_not_accused():
    """Ten per cent at each step: no ratio is stuck."""
    for seed in range(20):
        noise = 1 + 0.1 * np.random.default_rng(seed).standard_normal(STEPS)
        names = {"rollout_corr/k3_kl": KL, "train/k3_kl": 2 * KL * noise}
        [one] = kb.judge_log(kb.StepLog.of(names), framework="verl").findings
        assert one.code == "holes-suspected"
        assert not one.accuses
        assert "so one can be scaled too" in one.claim or abs(one.numbers["ratio"] - 0.5) > 0.005
        assert "added once per micro-batch" in one.advice
        once = names | {"train/k3_kl": KL * noise}
        assert not kb.judge_log(kb.StepLog.of(once), framework="verl").findings
        other = {"rollout_corr/k3_kl": KL, "val/k3_kl": 2 * KL * noise}
        assert not kb.judge_log(kb.StepLog.of(other), framework="verl").findings


def test_few_steps_are_no_ratio():
    log = kb.StepLog.of({"my_kl": [1.0, 2.0], "your_kl": [2.0, 4.0]})
    assert not kb.judge_log(log).findings
