from __future__ import annotations

from kullback.dictionary import find


def test_signs_that_are_turned():
    turned, *_ = find("actor/policykl", "roll")
    assert turned.sign == -1
    assert turned.can_be_negative
    assert turned.formula_text == "−(log old − log current)"


def test_the_default_of_slime_is_no_leash():
    loss, *_ = find("train/kl_loss", "slime")
    assert "zero" in loss.gradient
    right, _ = loss.under({"kl_loss_type": "k3", "use_unbiased_kl": True})
    assert right.weight == "current/old"
    wrong, _ = loss.under({"kl_loss_type": "k2", "use_unbiased_kl": True})
    assert wrong.gradient == "no divergence"


def test_where_the_coefficient_of_slime_has_no_effect():
    penalty, *_ = find("kl_coef", "slime")
    assert penalty.under({"advantage_estimator": "grpo"})[0].gradient == "nothing"


def test_skyrl_divides_by_the_length_whatever_is_set():
    assert find("policy_kl", "skyrl")[0].level == "sequence_mean"


def test_roll_logs_what_it_does_not_train_on():
    said = find("actor/kl_loss", "roll")[0].under({})[1]
    assert "It is logged, and not trained on." in said
