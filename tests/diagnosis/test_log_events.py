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


def test_a_kl_of_rounding_alone_is_0():
    rounding = 3e-9 * np.random.default_rng(0).standard_normal(40)
    one = told(rounding)["precision-floor"]
    assert "0 but for rounding" in one.claim
    assert set(told(rounding)) == {"precision-floor"}
    assert "precision-floor" not in told(np.abs(rounding) + 1e-6)


def test_a_kl_that_is_0_to_the_end_says_since_when():
    values = steady()
    values[1], values[30:] = 89.0, 0.0
    found = told(values)
    assert set(found) == {"precision-floor"}
    one = found["precision-floor"]
    assert one.where == ("step 30",)
    assert "from step 30 to the end, 70 of 100 steps" in one.claim
    assert "up to 89" in one.claim
    assert "entropy" in one.advice
    values[30:90] = 0.02
    assert "precision-floor" not in told(values)  # a tenth at least


def test_steps_without_a_number_do_not_hide_what_the_others_do():
    values = np.zeros(40)
    values[:8] = np.nan
    assert "exactly 0 at all 32 steps" in told(values)["precision-floor"].claim
    values = steady()
    values[30:70] = np.nan  # more than are looked at on either side
    values[70:] = 0.2
    assert "from about 0.02 to 0.2 at step 70" in told(values)["level-changed"].claim
    values = np.tile(np.linspace(0, 0.03, 50), 2)
    values[30:50] = np.nan
    assert "falls to about 0 at once" in told(values, "kl", "trl/GRPO")["level-changed"].claim


def test_what_two_series_do_at_one_step_is_told_once():
    values = steady()
    values[50] = 0.5
    log = kb.StepLog.of({"losses/approx_kl": values, "losses/old_approx_kl": values * 1.1})
    [one] = kb.judge_log(log, framework="cleanrl").findings
    assert one.code == "mean-owned-by-few"
    assert one.claim.endswith(" So does losses/old_approx_kl there.")


def test_a_reference_that_is_replaced_is_told_as_that():
    values = np.tile(np.linspace(0, 0.03, 25), 4)
    found = told(values, "kl", "trl/GRPO")
    assert set(found) == {"level-changed"}
    one = found["level-changed"]
    assert one.where == ("step 25", "step 50", "step 75")
    assert "has become the policy itself" in one.claim
    assert "(if it is a KL to the reference)" in told(values, "my_kl")["level-changed"].claim
    assert "has become" not in told(values, "actor/ppo_kl")["level-changed"].claim


def test_a_restart_is_named_where_the_level_changes():
    values = np.concatenate([steady(steps=60), 5 * steady(steps=60)[1:]])
    steps, times = np.arange(len(values), dtype=float), np.full(len(values), np.nan)
    for restarts, said in (((), "stays there."), ((60.0,), "where the run was started again.")):
        series = kb.Series(NAME, steps, values, times, restarts)
        found = kb.judge_log(kb.StepLog("log", "CSV", "", {NAME: series}), framework="verl")
        [one] = [one for one in found.findings if one.code == "level-changed"]
        assert one.claim.endswith(said)
    values[60:] = np.linspace(0, 0.01, len(values) - 60)
    series = kb.Series(NAME, steps, values, times, (60.0,))
    [one] = kb.judge_log(kb.StepLog("log", "CSV", "", {NAME: series}), framework="verl").findings
    assert "At step 60 the run was started again." in one.claim


def test_a_cycle_is_no_noise():
    """As where every batch is used four times."""
    rng = np.random.default_rng(0)
    cycle = np.tile([0.03, 0.05, 0.11, 0.2], 20) * np.exp(0.1 * rng.standard_normal(80))
    cycle[0] = 0.0
    assert told(cycle) == {}
