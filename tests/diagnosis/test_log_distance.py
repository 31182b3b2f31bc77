from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.diagnosis.log_distance import SHARE

STEPS = 60
GROWING = 0.01 * np.exp(np.linspace(0, 6, STEPS))  # to four nats


def told(values, name: str = "train/kl", framework: str | None = "trl/GRPO", **others):
    log = kb.StepLog.of({name: values} | others)
    return kb.judge_log(log, framework=framework)


def far(found):
    made = [one for one in found.findings if one.code == "far-apart"]
    return made[0] if made else None


def test_a_policy_that_runs_away_is_told_once_and_with_what_to_do():
    found = told(GROWING)
    assert [one.code for one in found.findings] == ["far-apart"]
    one = far(found)
    assert one is not None
    assert not one.accuses
    assert one.severity == "warning"
    assert one.numbers["share"] == pytest.approx((GROWING > 1).mean())
    assert one.where == (f"step {np.flatnonzero(GROWING > 1)[0]}",)
    assert "raise the coefficient" in one.advice


def test_a_kl_of_the_size_of_a_trained_policy_is_not():
    assert far(told(GROWING / 5)) is None


def test_few_steps_are_single_steps():
    values = np.full(STEPS, 0.02)
    values[[20, 40]] = 5.0
    assert far(told(values)) is None
    values[: int(SHARE * STEPS)] = 5.0
    assert far(told(values)) is not None


@pytest.mark.parametrize(
    ("name", "framework", "said"),
    [
        ("train/approx_kl", "sb3", "target_kl"),
        ("rollout_corr/k3_kl", "verl", "should be one policy"),
        ("my_kl", None, "If it is the KL of an update"),
    ],
)
def test_what_to_do_is_by_what_the_sides_are(name, framework, said):
    one = far(told(GROWING, name, framework))
    assert one is not None
    assert said in one.advice
    assert one.severity == ("warning" if framework else "note")
    assert ("(if it is per token)" in one.claim) == (framework is None)


def test_a_sum_over_a_sequence_is_divided_by_its_length():
    found = told(100 * GROWING, "objective/kl", "trl")
    checks = [one for one in found.diagnosis.checks if one.code == "far-apart"]
    assert [one.status for one in checks] == ["not-possible"]
    lengths = np.full(STEPS, 100.0)
    mine = {"completions/mean_length": lengths}
    one = far(told(100 * GROWING, "objective/kl", "trl", **mine))
    assert one is not None
    assert one.numbers["largest"] == pytest.approx(GROWING[-1])
    assert far(told(20 * GROWING, "objective/kl", "trl", **mine)) is None


def test_a_log_of_minus_a_kl_is_turned():
    assert far(told(-GROWING, "ref_kl", "prime-rl")) is not None


def test_of_a_kl_beyond_any_ratio_no_ratio_is_told():
    one = far(told(np.full(STEPS, 800.0)))
    assert one is not None
    assert "more than 100,000 times" in one.claim
