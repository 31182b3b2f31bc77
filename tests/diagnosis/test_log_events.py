from __future__ import annotations

import numpy as np
import pytest

import kullback as kb

NAME = "actor/kl_loss"


def told(values, name: str = NAME, framework: str = "verl", steps=None) -> dict:
    log = kb.StepLog.of({name: values}, steps=steps)
    return {one.code: one for one in kb.judge_log(log, framework=framework).findings}


def steady(level: float = 0.02, steps: int = 100) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal(steps)
    made = level * (1 + 0.02 * noise)
    made[0] = 0.0
    return made


def test_an_honest_series_is_not_spoken_of():
    assert told(steady()) == {}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_none_are_counted(bad):
    values = steady()
    values[[30, 40]] = bad
    one = told(values)["not-finite"]
    assert one.where == ("step 30", "step 40")
    assert one.severity == "warning"
    values[-5:] = bad
    assert told(values)["not-finite"].severity == "error"


def test_a_kl_that_starts_above_0_has_another_reference():
    one = told(steady() + 0.3)["reference-not-start"]
    assert one.numbers["first"] == pytest.approx(0.3)
    assert not one.accuses
    assert "reference-not-start" not in told(steady() + 0.3, steps=np.arange(10, 110))
    assert "reference-not-start" not in told(steady() + 0.3, "rollout_corr/k3_kl")


def test_a_name_that_may_be_a_kl_to_the_reference_is_told_so():
    one = told(steady() + 0.3, "kl", "trl")["reference-not-start"]
    assert "(if it is a KL to the reference)" in one.claim
    assert "reference-not-start" in told(steady() + 0.3, "my_ref_kl")
    assert "reference-not-start" not in told(steady() + 0.3, "my_kl")


def test_a_kl_per_sequence_starts_at_more():
    assert "reference-not-start" not in told(steady() + 0.3, "objective/kl", "trl")
    assert "reference-not-start" in told(steady() + 3, "objective/kl", "trl")


def test_spikes_say_what_they_own():
    values = steady()
    values[50] = 100.0
    one = told(values)["mean-owned-by-few"]
    assert one.numbers["share"] > 0.97
    assert one.where == ("step 50",)


def test_a_change_of_level_says_from_what_to_what():
    values = steady()
    values[60:] *= 4
    one = told(values)["level-changed"]
    assert one.numbers["before"] == pytest.approx(0.02, rel=0.05)
    assert one.numbers["after"] == pytest.approx(0.08, rel=0.05)
    assert one.where == ("step 60",)


def test_noise_says_what_rules_would_have_seen():
    values = 0.02 * np.exp(np.random.default_rng(0).standard_normal(400))
    one = told(values, "KL", "spinningup")["noise-above-signal"]
    assert f"{one.numbers['beyond_twice']:.0%} of" in one.cost
    assert one.numbers["series"] == 1


def test_noisy_series_are_told_together():
    values = 0.02 * np.exp(np.random.default_rng(0).standard_normal((3, 100)))
    series = {f"{name}_ref_kl": one for name, one in zip("abc", values, strict=True)}
    log = kb.StepLog.of(series | {"kl_coef": np.linspace(0.1, 0.2, 100)})
    [one] = [one for one in kb.judge_log(log).findings if one.code == "noise-above-signal"]
    assert one.numbers["series"] == 3
    assert "So are" in one.claim


@pytest.mark.parametrize("coefficient", [None, 0.001])
@pytest.mark.parametrize(("name", "framework"), [(NAME, "verl"), ("actor/ppo_kl", "verl")])
def test_noise_is_told_only_where_something_may_act_on_it(name, framework, coefficient):
    values = 0.02 * np.exp(np.random.default_rng(0).standard_normal(100))
    log = {name: values} | ({} if coefficient is None else {"kl_coef": np.full(100, coefficient)})
    judged = kb.judge_log(kb.StepLog.of(log), framework=framework)
    assert "noise-above-signal" not in {one.code for one in judged.findings}
    steered = kb.StepLog.of({name: values, "actor/kl_coef": np.linspace(0.1, 0.2, 100)})
    codes = {one.code for one in kb.judge_log(steered, framework=framework).findings}
    assert ("noise-above-signal" in codes) == (name == NAME)  # it does not follow the update


def test_of_few_steps_noise_cannot_be_told():
    checks = kb.judge_log(kb.StepLog.of({NAME: [0.0, 0.1]})).diagnosis.checks
    [one] = [one for one in checks if one.code == "noise-above-signal"]
    assert (one.status, one.reason) == ("not-possible", "2 steps, and 12 are needed")


def test_a_kl_that_is_0_at_every_step_is_told_with_both_reasons():
    one = told(np.zeros(50))["precision-floor"]
    assert (one.severity, one.accuses) == ("note", False)
    assert "the reference is the policy itself" in one.advice
    assert set(told(np.zeros(50), "actor/ppo_kl")) == {"precision-floor"}
    assert told(np.zeros(5)) == {}


def test_one_spike_is_one():
    values = steady()
    values[40] = 3.0
    assert "jumps at a single step" in told(values)["mean-owned-by-few"].claim
