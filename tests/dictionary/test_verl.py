from __future__ import annotations

import pytest

from kullback.dictionary import find

LOSS, *_ = find("actor/kl_loss", "verl")


def test_the_loss_is_off_by_default():
    assert LOSS.under({})[1] == ("It is not computed: use_kl_loss is False.",)


@pytest.mark.parametrize(
    ("kind", "method", "gradient", "clamped"),
    [
        ("k1", "k1", "zero", False),
        ("mse", "k2", "KL(current||reference), token by token", False),
        ("k3", "k3", "KL(reference||current), token by token", True),
        ("low_var_kl+", "k3", "KL(current||reference), token by token", True),
        ("abs", "abs", "no divergence", False),
    ],
)
def test_the_type_decides_method_and_gradient(kind, method, gradient, clamped):
    one, _ = LOSS.under({"actor.kl_loss_type": kind})
    assert (one.method, one.gradient, bool(one.clamp)) == (method, gradient, clamped)


def test_k1_by_sequence_makes_responses_longer():
    settings = {"actor.kl_loss_type": "k1", "actor.loss_agg_mode": "seq-mean-token-mean"}
    one, said = LOSS.under(settings)
    assert one.gradient == "E[1 / length], whole sequences"
    assert one.level == "sequence_mean"
    assert "Training on it makes responses longer." in said


def test_a_penalty_of_k3_is_not_the_kl():
    reward, *_ = find("actor/reward_kl_penalty")
    assert reward.gradient == "KL(current||reference), whole sequences"
    assert " - " in reward.under({"algorithm.kl_penalty": "low_var_kl"})[0].gradient


def test_the_update_and_the_engine_are_of_the_sampler():
    for name in ("actor/ppo_kl", "rollout_corr/kl", "rollout_corr/k3_kl"):
        assert find(name, "verl")[0].is_estimate
    bypass, _ = find("actor/ppo_kl")[0].under({"rollout_correction.bypass_mode": True})
    assert str(bypass.question) == "KL(rollout||current)"
