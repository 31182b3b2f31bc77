from __future__ import annotations

from kullback.dictionary import find


def test_signs_that_are_turned():
    for name, framework in (
        ("ref_kl", "prime-rl"),
        ("approx_kl", "areal"),
        ("behave_approx_kl", "areal"),
    ):
        one, *_ = find(name, framework)
        assert (one.sign, one.method, one.can_be_negative) == (-1, "k1", True)


def test_the_wrong_sampler_is_told():
    wrong, *_ = find("policy_kl_error", "nemo-rl")
    assert not wrong.is_estimate
    assert "chi2" in wrong.faults[0]
    assert find("gen_kl_error", "nemo-rl")[0].is_estimate


def test_the_weight_of_nemo_is_in_the_value_if_asked():
    loss, *_ = find("kl_penalty", "nemo-rl")
    assert not loss.is_estimate
    assert loss.under({"use_on_policy_kl_approximation": True})[0].is_estimate


def test_the_teacher_of_areal_has_no_effect_beside_rl():
    assert find("rkl_loss")[0].gradient == "zero"


def test_tinker_pays_for_length_if_the_future_counts():
    penalty, *_ = find("kl_policy_base")
    assert penalty.sign == 1
    changed, _ = penalty.under({"kl_discount_factor": 1.0})
    assert changed.gradient.startswith("no divergence")
