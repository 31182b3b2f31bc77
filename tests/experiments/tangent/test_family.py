from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import kullback as kb
from kullback.experiments.tangent import family

# Of a gap's mean: the divergence that kullback computes without it, and how many times.
NAMED = {
    "KL(p‖q)": lambda p, q: kb.divergence(p, q),
    "KL(q‖p)": lambda p, q: kb.divergence(q, p),
    "χ²(q‖p) / 2": lambda p, q: kb.divergence(q, p, "chi2") / 2,
    "χ²(p‖q) / 2": lambda p, q: kb.divergence(p, q, "chi2") / 2,
    "4 H²": lambda p, q: 4 * kb.divergence(p, q, "hellinger") ** 2,
    "4 JSD": lambda p, q: 4 * kb.divergence(p, q, "js"),
}


@pytest.mark.parametrize("name", NAMED)
def test_the_mean_of_a_gap_is_its_divergence(name):
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(6), size=2)
        found = family.mean(family.GAPS[name], (p, np.log(q / p)))
        assert found == pytest.approx(float(NAMED[name](p, q)), rel=1e-11)


@pytest.mark.parametrize("name", [name for name in NAMED if name != "4 JSD"])
@pytest.mark.parametrize("shift", [0.1, 1.0, 2.0])
def test_the_nodes_stand_for_a_normal(name, shift):
    found = family.mean(family.GAPS[name], family.shifted(shift))
    told = float(NAMED[name](norm(0.0, 1.0), norm(shift, 1.0)))
    assert found == pytest.approx(told, rel=1e-10)


@pytest.mark.parametrize("order", [-1.0, -0.3, 0.0, 0.5, 1.0, 1.7, 2.0])
def test_alpha_is_that_of_the_library(order):
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    found = family.mean(family.alpha(order), (p, np.log(q / p)))
    assert found == pytest.approx(float(kb.divergence(p, q, "alpha", order=order)), rel=1e-12)


def test_all_have_one_second_order_and_differ_in_the_third():
    found = {name: family.derivatives(gap) for name, gap in family.GAPS.items()}
    assert [second for second, _ in found.values()] == pytest.approx([1.0] * 7, abs=1e-8)
    assert [third for _, third in found.values()] == pytest.approx(
        [-2, -1, -3, 0, -3, -1.5, -1.5], abs=1e-4
    )


@pytest.mark.parametrize("name", family.GAPS)
def test_no_gap_is_below_0(name):
    log_r = np.linspace(-3, 3, 601)
    assert np.min(family.GAPS[name](log_r)) >= -1e-15


def test_merging_lowers_every_divergence_and_raises_the_mean_of_k2():
    before, after = family.merged()
    rises = {name for name in family.GAPS if after[name] > before[name]}
    assert rises == {"mean of k2"}
    p, q = family.MERGE
    assert np.sum(p) == pytest.approx(1)
    assert np.sum(q) == pytest.approx(1)
    assert np.all(q[:2] / p[:2] > np.e)  # where (log r)²/2 is concave


@pytest.mark.parametrize("share", [None, 0.5, 0.01])
@pytest.mark.parametrize("name", family.GAPS)
def test_close_by_every_divergence_is_the_quadratic(name, share):
    assert family.ratio(family.GAPS[name], share, 1e-3) == pytest.approx(1.0, abs=2e-3)


def test_the_limit_is_where_it_is_said_to_be():
    gap = family.GAPS["mean of k2"]  # between normals 1 + t²/4
    found = family.good_until(lambda t: family.ratio(gap, None, t) - 1, None)
    assert found == pytest.approx(0.2)
    kl = family.GAPS["KL(p‖q)"]
    assert family.good_until(lambda t: family.ratio(kl, None, t) - 1, None) is None
    for sign in (1, -1):
        found = family.good_until(lambda t: family.ratio(kl, 0.01, t) - 1, 0.01, sign)
        assert found is not None
        assert 4e-4 < found < 5e-4
