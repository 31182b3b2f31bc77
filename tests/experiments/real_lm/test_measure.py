from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.real_lm import measure
from kullback.experiments.real_lm.measure import DRAWN, PAIRS, Pair, pair

every = pytest.mark.parametrize("name", PAIRS)
# Three prefixes of two prompts, four tokens.
P = np.array([[0.4, 0.3, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]])
Q = np.array([[0.1, 0.2, 0.3, 0.4], [0.6, 0.2, 0.1, 0.1], [0.97, 0.01, 0.01, 0.01]])
PROMPT = np.array([0, 0, 1])
TERMS = {
    "k1": kb.k1(np.log(Q / P)),
    "k2": kb.k2(np.log(Q / P)),
    "k3": kb.k3(np.log(Q / P)),
}


@pytest.fixture
def small() -> Pair:
    means = {name: (P * term).sum(1) for name, term in TERMS.items()}
    return Pair(
        name="small",
        kl=means["k1"],
        kl_other=(Q * np.log(Q / P)).sum(1),
        mean_k2=means["k2"],
        variances={k: (P * term**2).sum(1) - means[k] ** 2 for k, term in TERMS.items()},
        prompt=PROMPT,
    )


def test_the_shape_is_that_of_the_library(small):
    for place, (p, q) in enumerate(zip(P, Q, strict=True)):
        shape = kb.shape(p, q)
        assert small.shape[place] == pytest.approx(shape.S, rel=1e-12)
        assert small.chi2[place] == pytest.approx(((q - p) ** 2 / p).sum(), rel=1e-12)


def test_one_lambda_for_all_is_the_best(small):
    def spread(lam):
        term = TERMS["k1"] + lam * (Q / P - 1)
        return ((P * term**2).sum(1) - (P * term).sum(1) ** 2).sum()

    lam = 1 / (2 * small.pooled)
    assert small.within("best λ").sum() == pytest.approx(spread(lam), rel=1e-12)
    assert spread(lam) < min(spread(lam - 0.01), spread(lam + 0.01))


@pytest.mark.parametrize("method", ["k1", "k2", "k3", "exact"])
def test_the_error_is_that_of_an_enumeration(small, method):
    """One prompt, drawn; a token at each of its prefixes; to first order about the mean tokens."""
    values = TERMS.get(method, np.broadcast_to(small.kl[:, None], P.shape))
    expected = (P * values).sum(1)
    total = 0.0
    for prompt in (0, 1):
        at = np.flatnonzero(prompt == PROMPT)
        for tokens in itertools.product(range(4), repeat=len(at)):
            chance = math.prod(P[i, k] for i, k in zip(at, tokens, strict=True))
            off = sum(values[i, k] - expected.mean() for i, k in zip(at, tokens, strict=True))
            total += chance * off**2 / 2
    bias = expected.mean() - small.mean
    exact = math.sqrt(total / 4 / 1.5**2 + bias**2)  # four prompts, 1.5 tokens on average
    assert small.error(method, 4) == pytest.approx(exact, rel=1e-12)


def test_at_the_same_prompts_the_exact_one_has_no_error(small):
    assert small.error("exact", 4, anew=False) == 0
    assert small.error("k1", 4, anew=False) < small.error("k1", 4)
    assert small.error("k3", 4) == pytest.approx(small.error("k3", 1) / 2, rel=1e-12)


@every
def test_what_is_recorded_is_possible(name):
    one = pair(name)
    assert len(one.kl) == 7632
    assert len(np.unique(one.prompt)) == 64
    assert one.kl.min() > -2e-5  # bfloat16 is not normalized to the last bit
    assert one.chi2.min() >= 0
    # An optimal λ leaves a variance, and χ² is at least the square of J over Var(k1).
    assert np.all(one.chi2 * one.variances["k1"] >= one.jeffreys**2 * (1 - 1e-2))


@every
def test_where_k3_is_noisier_s_is_above_1(name):
    one = pair(name)
    noisier = one.variances["k3"] > one.variances["k1"]
    assert np.array_equal(noisier, one.holed)
    assert (one.pooled > 1) == (one.error("k3", 8) > one.error("k1", 8))


@pytest.mark.parametrize("name", DRAWN)
def test_the_other_direction_is_not_below_its_bound(name):
    """χ² ≥ exp(KL) − 1 in either direction, on average over prefixes too."""
    shape, pooled, error = measure.other_direction(name)
    one = pair(name)
    chi2 = shape * 2 * one.jeffreys
    assert chi2.mean() > np.expm1(one.kl).mean()
    assert pooled == pytest.approx(chi2.mean() / (2 * one.jeffreys.mean()), rel=1e-9)
    assert 0 < error < 0.05 * pooled


def test_the_data_are_light():
    size = sum((measure.HERE / name).stat().st_size for name in ("smollm2.npz", "holes.json"))
    assert size < 1.5e6
