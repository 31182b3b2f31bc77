"""Every claim of the sample formulas, proved by exact sums over small worlds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.formulas import categorical, weights
from kullback.formulas.k_family import k1, k2, k3

from .laws import (
    CONDITIONS,
    HOLED,
    QUANTITIES,
    WORLDS,
    World,
    agree,
    has_expected_gradient,
    has_mean,
    mean,
)
from .right_formulas import CLAIMS, ESTIMATORS, POINTWISE, on_policy

each_claim = pytest.mark.parametrize("name", CLAIMS)
prove = settings(derandomize=True, max_examples=30, deadline=None, database=None)


def policies(size: int) -> st.SearchStrategy[np.ndarray]:
    logits = st.lists(st.floats(-6, 6), min_size=size, max_size=size)
    return logits.map(lambda z: np.exp(categorical.log_softmax(z)))


def worlds() -> st.SearchStrategy[World]:
    return st.integers(2, 6).flatmap(
        lambda size: st.builds(World, policies(size), policies(size), policies(size))
    )


def test_each_sample_formula_has_a_claim() -> None:
    assert CLAIMS.keys() == ESTIMATORS.keys()


@each_claim
def test_mean_is_the_claimed_one_in_every_world_that_meets_the_conditions(name: str) -> None:
    claim = CLAIMS[name]
    meets = [w for w in WORLDS + HOLED if all(CONDITIONS[c](w) for c in claim.conditions)]
    assert len(meets) > len(WORLDS)
    assert has_mean(claim.unbiased_for, claim.sampler, ESTIMATORS[name], meets)


@each_claim
def test_mean_without_support_is_the_claimed_one(name: str) -> None:
    claim = CLAIMS[name]
    fails = [w for w in HOLED if not all(CONDITIONS[c](w) for c in claim.conditions)]
    assert bool(fails) == (claim.mean_without_support is not None)
    if claim.mean_without_support is not None:
        assert has_mean(claim.mean_without_support, claim.sampler, ESTIMATORS[name], fails)
        assert not has_mean(claim.unbiased_for, claim.sampler, ESTIMATORS[name], fails)


@each_claim
@prove
@given(w=worlds())
def test_mean_is_the_claimed_one_between_any_policies(name: str, w: World) -> None:
    claim = CLAIMS[name]
    assert has_mean(claim.unbiased_for, claim.sampler, ESTIMATORS[name], [w])


@each_claim
def test_expected_gradient_is_the_claimed_one(name: str) -> None:
    claim = CLAIMS[name]
    estimator = ESTIMATORS[name]
    assert has_expected_gradient(claim.expected_gradient, claim.sampler, estimator, WORLDS)


@each_claim
@prove
@given(w=worlds())
def test_expected_gradient_is_the_claimed_one_between_any_policies(name: str, w: World) -> None:
    claim = CLAIMS[name]
    assert has_expected_gradient(claim.expected_gradient, claim.sampler, ESTIMATORS[name], [w])


@pytest.mark.parametrize("name", POINTWISE)
def test_on_policy_no_formula_has_the_gradient_of_its_own_mean(name: str) -> None:
    claim = CLAIMS[name]
    assert claim.expected_gradient != claim.unbiased_for
    assert not has_expected_gradient(claim.unbiased_for, "p", ESTIMATORS[name], WORLDS[:1])


@pytest.mark.parametrize("name", ["k1", "k2", "k3"])
def test_a_weight_held_constant_gives_the_gradient_of_the_unweighted_formula(name: str) -> None:
    formula = POINTWISE[name]

    def detached(log_p: np.ndarray, log_q: np.ndarray, log_sampler: np.ndarray) -> np.ndarray:
        return np.exp(np.real(log_p) - log_sampler) * formula(log_q - log_p)

    assert has_expected_gradient(CLAIMS[name].expected_gradient, "s", detached, WORLDS)


@each_claim
def test_a_negative_value_exists_exactly_where_one_is_claimed(name: str) -> None:
    claim = CLAIMS[name]
    lowest = min(
        np.min(ESTIMATORS[name](np.log(w.p), np.log(w.q), np.log(w.s))) for w in WORLDS[:4]
    )
    assert (lowest < 0) == claim.can_be_negative


never_negative = [
    name for name, claim in CLAIMS.items() if not claim.can_be_negative and name != "f_form"
]
log_probs = st.floats(max_value=0, allow_nan=False)


@pytest.mark.parametrize("name", never_negative)
@prove
@given(log_p=log_probs, log_q=log_probs, log_sampler=st.floats(-1e3, 0))
def test_no_value_is_negative_where_none_is_claimed(
    name: str, log_p: float, log_q: float, log_sampler: float
) -> None:
    if log_p == log_q == -np.inf:
        log_q = 0.0  # log r of an impossible token does not exist
    value = ESTIMATORS[name](*(np.asarray(x) for x in (log_p, log_q, log_sampler)))
    assert value >= 0


@prove
@given(log_q_over_p=st.floats(-300, 300))
def test_f_form_is_negative_by_rounding_only(log_q_over_p: float) -> None:
    assert POINTWISE["f_form"](log_q_over_p) >= -1e-15


def test_a_q_trained_on_the_sample_breaks_unbiasedness() -> None:
    w = WORLDS[0]
    raised = [w.q + 0.2 * (np.eye(3)[x] - w.q) for x in range(3)]  # q after it has seen x
    expected = sum(w.p[x] * QUANTITIES["KL(p||q)"](w._replace(q=raised[x])) for x in range(3))
    seen = np.log([raised[x][x] / w.p[x] for x in range(3)])
    assert np.sum(w.p * k1(seen)) < -0.3 < 0 < expected < np.sum(w.p * k3(seen)) - 0.04


def test_a_p_trained_on_the_sample_breaks_the_weights() -> None:
    w = WORLDS[0]
    raised = np.array([0.8 * w.p[x] + 0.2 for x in range(3)])  # of the token that s drew
    logs = {"log_p": np.log(raised), "log_q": np.log(w.q), "log_sampler": np.log(w.s)}
    after = [0.8 * w.p + 0.2 * np.eye(3)[x] for x in range(3)]
    expected = sum(w.s[x] * QUANTITIES["KL(p||q)"](w._replace(p=after[x])) for x in range(3))
    for formula in (weights.weighted_k1, weights.weighted_k3):
        assert abs(np.sum(w.s * formula(**logs)) - expected) > 0.03
    weight = weights.control(log_target=logs["log_p"], log_sampler=logs["log_sampler"])
    assert np.isclose(np.sum(w.s * weight), 0.4, rtol=1e-12)


def test_selecting_on_the_outcome_breaks_unbiasedness() -> None:
    w = WORLDS[1]
    kept = np.array([0.0, 0.5, 0.5])  # the sequences that did not hit the hole
    for formula in (k1, k3):
        selected = np.sum(kept * formula(np.log(w.q / w.p)))
        assert abs(selected - QUANTITIES["KL(p||q)"](w)) > 0.004


@prove
@given(w=worlds())
def test_on_policy_weighted_formulas_are_the_unweighted_ones(w: World) -> None:
    log_p, log_q = np.log(w.p), np.log(w.q)
    pairs = ((weights.weighted_k1, k1), (weights.weighted_k2, k2), (weights.weighted_k3, k3))
    for weighted, plain in pairs:
        value = weighted(log_p=log_p, log_q=log_q, log_sampler=log_p)
        assert agree(value, on_policy(plain)(log_p, log_q, log_p))


def test_control_is_zero_in_the_mean_for_q_too() -> None:
    for w in WORLDS:
        value = mean(lambda p, q, s: weights.control(log_target=q, log_sampler=s), w, "s")
        assert agree(value, 0.0)
