from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kullback.estimation import tapered as module
from kullback.estimation.tapered import KNOTS, tapered

PROPERTY = settings(derandomize=True, deadline=None)
# What any rule must lose in the worst case, by R, against the better of k1 and k3: the value of
# the game in which Nature chooses between no hole and a hole of any size, in the normal limit.
MINIMAX = {3.0: 1.34, 7.0: 1.59, 14.0: 1.85, 28.0: 2.11, 100.0: 2.60}


@np.errstate(over="ignore")
def terms(log_r: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return -log_r, np.expm1(log_r) - log_r


def of(log_r: NDArray[np.float64], effective: float | None = None) -> module.Tapered:
    k1, k3 = terms(log_r)
    count = len(log_r)
    clusters = count if effective is None else effective
    return tapered(k1, k3, np.ones(count), effective=clusters)


def prices(gain: float) -> tuple[float, float, float]:
    """Root mean squared error where nothing hides, and at the worst hole, over the better one's.

    In standard errors of k1 with z = z(hole) + noise: k_λ has the error 1/R and lacks the hole, k1
    has the noise. The third is the largest bias.
    """
    z, step = np.linspace(-8, 14, 4401, retstep=True)
    weight = np.array([module._weight(one, gain) for one in z])
    left = 1 - gain**-2

    def density(hole: float) -> NDArray[np.float64]:
        return np.exp(-0.5 * (z - hole) ** 2) / np.sqrt(2 * np.pi) * step

    quiet = 1 + (gain**2 - 1) * np.sum(((1 - weight) * z) ** 2 * density(0.0))
    holes = np.linspace(0, 9, 37)
    hit = [gain**-2 + left * np.sum((z - hole - weight * z) ** 2 * density(hole)) for hole in holes]
    lean = [np.sqrt(left) * np.sum(weight * z * density(hole)) for hole in holes]
    return float(np.sqrt(quiet)), float(np.sqrt(max(hit))), float(max(lean))


@pytest.mark.parametrize("gain", MINIMAX)
def test_the_worst_case_costs_little_more_than_it_must(gain: float) -> None:
    quiet, hit, _ = prices(gain)
    assert quiet < MINIMAX[gain]
    assert MINIMAX[gain] < hit < 1.12 * MINIMAX[gain]


def test_the_largest_bias_is_as_the_docstring_says() -> None:
    said = {7.0: 1.24, 28.0: 1.89, 100.0: 2.50}
    for gain, bias in said.items():
        assert prices(gain)[2] == pytest.approx(bias, abs=0.01)
    assert "1.2, 1.9 or 2.5 se(k1) at R = 7, 28 or 100" in str(tapered.__doc__)


def test_the_taper_is_later_where_more_is_to_be_lost() -> None:
    assert (np.diff(KNOTS, axis=0) > 0).all()
    for gain in (1.0, 5.0, 1e5, np.inf):
        weights = [module._weight(z, gain) for z in (-np.inf, -3.0, 0.0, 2.0, 4.0, 7.0, np.inf)]
        assert weights == sorted(weights, reverse=True)
        assert (weights[0], weights[-1]) == (1.0, 0.0)


def means_over_all_samples(p: list[float], q: list[float], clusters: int) -> dict[str, float]:
    """E of the mean before the taper, cross-fitted and with the λ of all, by enumeration."""
    log_r = np.log(q) - np.log(p)
    totals = {"cross-fitted": 0.0, "in-sample": 0.0}
    for outcome in product(range(len(p)), repeat=clusters):
        chosen = list(outcome)
        k1, k3 = terms(log_r[chosen])
        control, ones = k3 - k1, np.ones(clusters)
        chance = float(np.prod(np.array(p)[chosen]))
        full = module._coefficient(k1, control, ones)
        fitted = module._cross_fitted(k1, control, ones)
        for name, lam in (("cross-fitted", fitted), ("in-sample", full)):
            totals[name] += chance * float((k1 + lam * control).mean())
    return totals


def test_cross_fitting_is_unbiased_and_its_in_sample_twin_is_not() -> None:
    p, q = [0.5, 0.3, 0.2], [0.3, 0.3, 0.4]
    exact = float(np.dot(p, np.log(p) - np.log(q)))
    found = means_over_all_samples(p, q, 6)
    assert found["cross-fitted"] == pytest.approx(exact, abs=1e-12)
    assert abs(found["in-sample"] - exact) > 1e-3


def test_each_cluster_takes_the_coefficient_of_the_others() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 9, size=40).astype(np.float64)
    k1, k3 = (term * sizes for term in terms(rng.normal(-0.02, 0.2, size=40)))
    found = tapered(k1, k3, sizes, effective=40)
    for one in (0, 17, 39):
        others = np.arange(40) != one
        lam = module._coefficient(k1[others], (k3 - k1)[others], sizes[others])
        assert found.untapered[one] == pytest.approx(k1[one] + lam * (k3 - k1)[one], rel=1e-10)


def test_the_order_and_the_names_of_clusters_change_nothing() -> None:
    log_r = np.random.default_rng(8).normal(-0.01, 0.2, size=100)
    order = np.random.default_rng(9).permutation(100)
    assert of(log_r[order]).above == pytest.approx(of(log_r).above[order], rel=1e-10)


def test_a_hole_that_one_cluster_alone_has_met_is_not_weighed_by_the_others() -> None:
    log_r = np.random.default_rng(4).normal(0, 0.1, size=200)
    log_r[7] = 8.0
    found = of(log_r)
    assert found.untapered == pytest.approx(terms(log_r)[0] + found.full * np.expm1(log_r))
    assert found.full < 0.01
    assert abs(found.above.mean()) < 0.1 < terms(log_r)[1].mean()


def test_smooth_pairs_get_nearly_k3_and_hidden_holes_k1() -> None:
    log_r = np.random.default_rng(5).normal(-0.005, 0.1, size=400)
    smooth = of(log_r)
    assert smooth.lam == smooth.full == pytest.approx(1.0, abs=0.02)
    hidden = of(log_r - 0.05)  # all ratios lower: what is missing was not sampled
    assert hidden.disagreement > 6
    assert hidden.lam == 0.0
    assert hidden.above == pytest.approx(terms(log_r - 0.05)[0])


def test_k1_where_a_coefficient_cannot_be_told() -> None:
    rng = np.random.default_rng(6)
    few = rng.normal(0, 0.1, size=4)
    overflowing = np.append(rng.normal(0, 0.1, size=19), 800.0)
    for log_r in (few, overflowing, np.full(30, -0.1), np.zeros(30)):
        found = of(log_r)
        assert found.lam == 0.0
        assert found.above == pytest.approx(terms(log_r)[0], rel=1e-12)


@PROPERTY
@given(
    st.lists(st.tuples(st.floats(-30, 30), st.integers(1, 50)), min_size=1, max_size=30),
    st.floats(1, 40),
)
def test_the_weight_is_between_the_two_and_nothing_is_nan(rows, effective: float) -> None:
    log_r, sizes = np.array(rows, dtype=np.float64).T
    k1, k3 = (term * sizes for term in terms(log_r))
    found = tapered(k1, k3, sizes, effective=effective)
    assert np.isfinite(found.above).all()
    assert abs(found.lam) <= abs(found.full)
    assert not np.isnan(found.disagreement)
