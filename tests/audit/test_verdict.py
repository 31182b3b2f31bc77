from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.audit.verdict import sampled

torch = pytest.importorskip("torch")


def probed(fn, **given):
    return kb.audit.probe(fn, **given)


def k3(x):
    return torch.exp(x) - 1 - x


def label(found, name):
    return " ".join(text for said, text in found.details if said == name)


def test_the_value_the_gradient_and_that_they_are_not_one():
    found = probed(lambda current, reference: k3(reference - current).clamp(max=10))
    assert found.verdict == (
        "Its value is k3 of KL(current||reference), clamped at 10. As a loss it descends "
        "KL(reference||current), the other direction, token by token with the sampler's prefixes "
        "held fixed. It is not the gradient of its value."
    )


def test_where_they_are_one_nothing_is_said_of_it():
    found = probed(
        lambda current, reference: (current - current.detach()).exp() * k3(reference - current)
    )
    assert "not the gradient of its value" not in found.verdict


def test_a_factor_that_only_one_of_them_has():
    # The value of k1, and twice its gradient.
    found = probed(
        lambda current, reference: (
            (current - reference) ** 2 + (current - reference - (current - reference) ** 2).detach()
        )
    )
    assert found.verdict.endswith("not the gradient of its value: the factor is another.")


def test_a_term_between_current_and_its_old_copy_is_judged_on_old_tokens():
    found = probed(lambda current, old: k3(current - old))
    assert "As a loss on tokens of an older policy it descends KL(old||current)" in found.verdict


@pytest.mark.parametrize(
    ("fn", "told"),
    [
        (lambda log_prob: -log_prob, "depends on current alone"),
        (lambda log_prob, ref_log_prob: 0 * log_prob, "depends on no policy"),
        (lambda log_prob, old_log_prob: (log_prob - old_log_prob).exp(), "no measure of how far"),
        (
            lambda log_prob, old_log_prob: torch.sin(3 * log_prob) * old_log_prob,
            "where all policies agree it is",
        ),
    ],
    ids=["one policy", "none", "a ratio", "anything"],
)
def test_what_is_no_kl_is_told_with_the_reason(fn, told):
    found = probed(fn)
    assert not found.is_kl
    assert "It is not a KL term" in found.verdict
    assert told in found.verdict


def test_an_unknown_formula_that_vanishes_where_policies_agree_is_one():
    found = probed(lambda current, reference: torch.tanh(current - reference) ** 2)
    assert found.is_kl
    assert "no formula that is known here" in found.verdict


def test_the_derivative_is_told_where_the_value_does_not_say_it():
    x2 = probed(lambda current, reference: (current - reference) ** 2 / 2)
    assert label(x2, "Derivative") == ""
    through = probed(
        lambda current, reference: (
            (current - reference) ** 2 / 2
            + (current - reference - (current - reference) ** 2 / 2).detach()
        )
    )
    assert label(through, "Derivative").startswith("That of k2")
    odd = probed(lambda current, reference: torch.tanh(current - reference) ** 2)
    assert "no form that is known" in label(odd, "Derivative")


def test_means_are_grouped_by_who_sampled():
    found = probed(lambda current, reference: current - reference)
    assert "Its mean is KL(current||reference), if the current policy sampled." in label(
        found, "Value"
    )
    assert "Its mean is no KL, if an older policy sampled." in label(found, "Value")
    control = probed(lambda current, old: torch.expm1(current - old))
    assert "Its mean is 0, whoever sampled." in label(control, "Value")


def test_a_reward_is_told_for_each_credit():
    found = probed(lambda current, reference: (current - reference).detach())
    told = label(found, "Gradient")
    assert "credited with the reward to go, if the current policy sampled, it descends" in told
    assert "with immediate credit only" in told
    # What is the same for both ways of credit is said once.
    assert found.verdict.count("In the reward") == 1


def test_who_sampled():
    assert sampled(["on-policy", "stale"], 2) == "whoever sampled"
    assert sampled(["on-policy"], 1) == "if the current policy sampled"


def test_nothing_is_told_twice_as_numbers_and_as_words():
    found = probed(lambda current, reference: 2 * (current - reference))
    assert np.isclose(found.value.factor or 0.0, 2)
    assert found.verdict.startswith("Its value is 2 times k1")
