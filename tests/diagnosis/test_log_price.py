from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

import kullback as kb
from kullback.diagnosis.sampler_tests import ALPHA, FLOAT32_FLOOR

K1 = "rollout_corr/kl"  # of verl: k1 of KL(rollout||old), which rollout sampled


def judged(name, values, tokens: int | None = 1000, framework: str | None = "verl", beside=None):
    log = kb.StepLog.of({name: np.asarray(values, float)} | (beside or {}))
    return kb.judge_log(log, framework=framework, tokens=tokens)


def codes(found) -> list[str]:
    return [one.code for one in found.findings if one.accuses]


def check(found, code: str):
    [one] = [one for one in found.diagnosis.checks if one.code == code]
    return one


def test_the_price_is_that_of_the_lowest_running_sum():
    found = judged(K1, [0.01, -0.02, -0.01, 0.05], tokens=1000)
    [one] = [f for f in found.findings if f.code == "negative-beyond-chance"]
    nats = 1000 * (0.02 - FLOAT32_FLOOR * 3)
    assert one.numbers["nats"] == pytest.approx(nats)
    assert one.numbers["mean"] == pytest.approx(-0.02 / 3)
    # A single step of −20 nats, times four steps, is rarer still; and there are two such tests.
    single = 1000 * (0.02 - FLOAT32_FLOOR) - log(4)
    assert one.numbers["log_p"] == pytest.approx(-max(nats, single) + log(2))
    assert one.certainty == "beyond-chance"


def test_what_chance_does_is_not_accused():
    needed = (-log(ALPHA / 2) / 1000) + FLOAT32_FLOOR
    assert codes(judged(K1, [-needed * 1.01])) == ["negative-beyond-chance"]
    assert codes(judged(K1, [-needed * 0.99])) == []


def test_the_level_is_shared_by_all_series():
    value = -(-log(ALPHA / 2) / 1000 + FLOAT32_FLOOR) * 1.01
    other = {"rollout_correction/kl": np.array([value])}
    assert codes(judged(K1, [value], framework=None, beside=other)) == []


def test_the_bound_holds_over_all_looks():
    """P(any running sum of k1 ≤ −c) ≤ e^−c: of 4000 honest runs of 50 batches, close policies."""
    rng = np.random.default_rng(0)
    kl, tokens = 1e-3, 200
    sums = rng.normal(kl * tokens, np.sqrt(2 * kl * tokens), (4000, 50)).cumsum(axis=1)
    for c in (0.5, 1.0, 2.0):
        share = (sums.min(axis=1) <= -c).mean()
        assert share <= exp(-c) + 4 * np.sqrt(exp(-c) / 4000)


def test_without_tokens_nothing_can_be_told():
    one = check(judged(K1, np.full(20, -0.03), tokens=None), "negative-beyond-chance")
    assert one.status == "not-possible"
    assert "--tokens N" in one.reason
    assert "154 tokens or more would be beyond chance" in one.reason


def test_tokens_of_prompts_are_too_many():
    more = {"perf/total_num_tokens": np.full(20, 1000.0)}
    one = check(judged(K1, np.full(20, -0.03), None, beside=more), "negative-beyond-chance")
    assert "those of prompts too" in one.reason


@pytest.mark.parametrize(
    ("name", "framework", "why"),
    [
        ("actor/ppo_kl", "verl", "trained on these very tokens"),
        ("actor/reward_kl_penalty", "verl", "mean of the means of sequences"),
        ("kl_loss", "tunix", "current moves away from it"),
        ("my/ppo_kl_mean", None, "these very tokens"),
    ],
)
def test_what_has_other_causes_has_no_price(name, framework, why):
    found = judged(name, np.full(20, -0.03), framework=framework)
    assert codes(found) == []
    assert why in check(found, "negative-beyond-chance").reason


def test_a_kl_per_sequence_has_the_price_of_its_sequences():
    """8 sequences of 125 tokens: their sum is 8 times the mean."""
    length = {"response_length/mean": np.full(1, 125.0)}
    found = judged("objective/kl", [-1.0], 1000, "trl", length)
    [one] = [f for f in found.findings if f.code == "negative-beyond-chance"]
    assert one.numbers["nats"] == pytest.approx(8 - 1000 * FLOAT32_FLOOR)


def test_a_series_that_is_logged_as_minus_its_kl_is_turned():
    found = judged("ref_kl", [0.03] * 4, framework="prime-rl")
    assert codes(found) == []  # its sampler moves behind it
    minus = judged("behave_approx_kl", [0.03] * 4, framework="areal")
    assert codes(minus) == ["negative-beyond-chance"]
    assert codes(judged("behave_approx_kl", [-0.03] * 4, framework="areal")) == []


def test_an_unknown_name_is_accused_with_less_certainty():
    [one] = judged("my_kl", [-0.03] * 4, framework=None).findings
    assert (one.code, one.certainty, one.severity) == (
        "negative-beyond-chance", "likely", "warning",
    )  # fmt: skip
    assert "as its name allows" in one.claim
    near = judged("my_kl", [-0.009] * 4, framework=None)
    assert codes(near) == []
    assert "name the framework" in check(near, "negative-beyond-chance").reason


@pytest.mark.parametrize(
    ("name", "framework"),
    [("rollout_corr/k3_kl", "verl"), ("my_k3", None), ("my_kl_k3", None), ("kl", "kl-rb")],
)
def test_what_is_never_negative_is_not(name, framework):
    name = "objective/kl" if framework == "kl-rb" else name.replace("my_k3", "my_kl/k3")
    found = judged(name, [0.1, -0.1, 0.1], framework=framework)
    assert codes(found) == ["sign-impossible"]
    [one] = [f for f in found.findings if f.accuses]
    assert one.where == ("step 1",)
    assert one.severity == "error"


def test_rounding_is_told_apart():
    assert codes(judged("rollout_corr/k3_kl", [0.1, -6e-8])) == []
    [one] = [f for f in judged("rollout_corr/k3_kl", [0.1, -1e-3]).findings if f.accuses]
    assert one.severity == "warning"
    assert "bfloat16" in one.claim


def test_without_the_framework_a_name_may_be_somebody_elses():
    found = judged("train/approx_kl", [-0.1] * 4, framework=None)
    assert codes(found) == []
    assert "name the framework" in check(found, "sign-impossible").reason


def test_one_sequence_of_each_step_can_be_enough():
    """PPO's KL per sequence at −2.4 for a whole run: no count of tokens is needed to accuse."""
    for tokens in (None, 10_000):
        found = judged("objective/kl", np.full(50, -2.4), tokens, "trl")
        assert codes(found) == ["negative-beyond-chance"]
        [one] = [f for f in found.findings if f.accuses]
        assert one.numbers["nats"] == pytest.approx(50 * (2.4 - 10_000 * FLOAT32_FLOOR))
        assert "over one sequence of each step alone" in one.claim
    assert codes(judged("objective/kl", np.full(50, -0.3), None, "trl")) == []


def test_a_mean_length_is_enough_where_every_step_is_negative():
    steps = np.arange(1.0, 201.0)
    values = -0.031 + 0.004 * np.random.default_rng(0).standard_normal(200)
    named = {"kl": values, "completions/mean_length": np.full(200, 128.0)}
    judged = kb.judge_log(kb.StepLog.of(named, steps=steps), framework="trl")
    (found,) = [one for one in judged.diagnosis.findings if one.accuses]
    assert found.code == "negative-beyond-chance"
    assert found.numbers["tokens"] == pytest.approx(128 * 200)
    assert "one sequence a step: with equally many in each it is less yet" in found.claim


def test_a_name_that_another_trainer_cannot_have_below_0_is_said():
    values = np.full(20, 0.05)
    values[7] = -0.01
    log = kb.StepLog.of({"train/kl": values})
    checks = kb.judge_log(log, framework="trl").diagnosis.checks
    [one] = [one for one in checks if one.code == "sign-impossible"]
    assert one.status == "not-possible"
    assert "(--framework trl/GRPOTrainer)" in one.reason
    [wrong] = kb.judge_log(log, framework="trl/GRPO").findings
    assert wrong.claim.endswith("and k3 of KL(current||reference) ~ old (trl) cannot be.")
    assert not [one for one in kb.judge_log(log).diagnosis.checks if one.code == "sign-impossible"]
