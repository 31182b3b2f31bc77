from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.holes import batches
from kullback.experiments.holes.measure import Q, hole

DEPTH = 1.0
P = hole(Q[0] * 10.0**-DEPTH)
KL = float(kb.divergence(P, Q))
VALUES = {"k1": kb.k1(np.log(Q / P)), "k3": kb.k3(np.log(Q / P))}


@pytest.mark.parametrize("samples", [64, 1024])
def test_the_interval_is_that_of_the_library(samples):
    hits = np.array([0, 1, 2, 5, 20])
    for method, values in VALUES.items():
        held = []
        for hit in hits:
            category = (np.arange(samples) >= hit).astype(int)
            log_p, log_q = np.log(P[:2])[category], np.log(Q[:2])[category]
            found = kb.estimate(log_p=log_p, log_q=log_q, lengths=1, method=method)
            held.append(found.low <= KL <= found.high)
        assert batches.covers(values, hits, samples, KL).tolist() == held


@pytest.mark.parametrize("samples", batches.SIZES)
@pytest.mark.parametrize("depth", [1.0, 2.0, 3.0])
def test_intervals_around_k1_and_k3_hold_together(samples, depth):
    """Both are linear in the number of hits: they are off in the same batches."""
    p = hole(Q[0] * 10.0**-depth)
    kl = float(kb.divergence(p, Q))
    hits = np.arange(0, min(samples, 3000) + 1)
    k1, k3 = (formula(np.log(Q / p)) for formula in (kb.k1, kb.k3))
    by_k1, by_k3 = (batches.covers(values, hits, samples, kl) for values in (k1, k3))
    assert np.array_equal(by_k1, by_k3)


def test_the_exact_coverage_is_that_of_draws():
    rng = np.random.default_rng(0)
    hits = rng.binomial(256, P[0], size=20_000)
    held = np.mean(batches.covers(VALUES["k3"], hits, 256, KL))
    exact = batches.seen(256, DEPTH).cover
    assert abs(held - exact) < 5 * np.sqrt(exact * (1 - exact) / 20_000)


def test_the_coverage_of_the_documents_deepest_hole():
    """As simulated elsewhere: 0.004, 0.06 and 0.41 at depth 3.5 for n = 64, 1024 and 8192."""
    found = [batches.seen(samples, 3.5).cover for samples in (64, 1024, 8192)]
    assert found == pytest.approx([0.004, 0.063, 0.41], abs=0.01)


def test_what_allows_for_the_unseen_holds():
    for samples in (64, 1024):
        assert batches.cover_auto(samples, 3.0, 0) > 0.95 > batches.seen(samples, 3.0).cover
