from __future__ import annotations

import pytest

from kullback.explaining.scalar import judge
from kullback.explaining.trainer_values import judge_logged


@pytest.mark.parametrize("value", [-0.031, 0.031])
def test_a_turned_sign_is_turned_back(value):
    turned = judge_logged("actor/policykl", value, 8192, "roll")
    assert turned.caption == judge("k1", -value, 8192).caption
    assert turned.numbers["verdict"] == judge("k1", -value, 8192).numbers["verdict"]
    assert (turned.numbers["value"], turned.numbers["sign"]) == (value, -1)
    assert turned.sections[0].text.startswith("Minus k1 of KL(old||current)")


def test_the_judgment_of_k1_is_the_same_as_ever():
    said = judge_logged("actor/ppo_kl", -0.031, 8192, "verl")
    assert said.sections[1:] == judge("k1", -0.031, 8192).sections
    assert said.name == "actor/ppo_kl (verl) = -0.031 over 8192 tokens"


def test_who_sampled_is_said_where_it_was_not_p():
    said = judge_logged("ref_kl", -0.031, 8192, "prime-rl")
    assert "Rollout sampled, not current, and no weight is there" in said.sections[0].text


def test_what_cannot_be_negative_is_impossible_at_any_level():
    for name, framework in (("policy_kl", "skyrl"), ("kl", "trl/GRPO"), ("actor/approxkl", "roll")):
        said = judge_logged(name, -0.1, 4096, framework)
        assert said.numbers["verdict"] == "impossible"


def test_padding_is_counted_where_it_is_in_the_mean():
    said = judge_logged("kl_approx", -0.01, 100, "torchrl")
    assert "padding counts" in said.sections[0].text


def test_the_settings_may_decide():
    flat = {"actor.kl_loss_type": "k1"}
    said = judge_logged("actor/kl_loss", -0.031, 8192, "verl", config=flat)
    assert said.numbers["verdict"] == "not-noise"
    without = judge_logged("actor/kl_loss", -0.031, 8192, "verl")
    assert without.numbers["verdict"] == "impossible"


@pytest.mark.parametrize(
    ("name", "framework", "told"),
    [
        ("kl", "trl", "5 numbers of trl are called kl"),
        ("critic/kl", "roll", "it is no mean over tokens"),
        ("objective/kl", "kl-rb", "cannot be judged by a count of tokens: it is the KL at"),
        ("train/tis", "slime", "it is the ratio of trainer to engine"),
        ("kl_los", "verl", "did you mean actor/kl_loss"),
    ],
)
def test_what_a_count_does_not_judge_is_refused(name, framework, told):
    with pytest.raises(ValueError, match=told):
        judge_logged(name, 0.1, 512, framework)


def test_weighted_k1_is_not_judged():
    flat = {"kl_loss_type": "k1", "use_unbiased_kl": True}
    with pytest.raises(ValueError, match="it is no mean over tokens"):
        judge_logged("train/kl_loss", -0.1, 512, "slime", config=flat)
    flat = {"reference_policy_kl_type": "k1", "use_on_policy_kl_approximation": True}
    with pytest.raises(ValueError, match="its terms are weighted by current/rollout"):
        judge_logged("kl_penalty", -0.1, 512, "nemo-rl", config=flat)
