"""The moments of Gaussian pairs against quadrature, and where they stop existing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kullback.formulas import gaussian_shape
from kullback.formulas.k_family import k1, k2, k3, k_lambda

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(160)
PAIRS = [
    (0.0, 1.0, 0.3, 1.0),
    (0.0, 1.0, 1.5, 1.0),
    (0.3, 0.8, -0.2, 0.5),
    (2.0, 0.1, 2.05, 0.11),
    (-3.0, 5.0, 4.0, 4.5),
    (0.0, 1.41, 0.0, 1.0),
]


def named(pair: tuple[float, float, float, float]) -> dict[str, float]:
    return dict(zip(("mean_p", "std_p", "mean_q", "std_q"), pair, strict=True))


def moments(pair: tuple[float, float, float, float], formula: Callable[[Any], Any]) -> tuple:
    """Mean and variance of formula(log q/p) under p, by Gauss-Hermite quadrature."""
    mean_p, std_p, mean_q, std_q = pair
    x = mean_p + std_p * NODES
    log_r = np.log(std_p / std_q) + NODES**2 / 2 - ((x - mean_q) / std_q) ** 2 / 2
    weight = WEIGHTS / np.sum(WEIGHTS)
    mean = np.sum(weight * formula(log_r))
    return mean, np.sum(weight * (formula(log_r) - mean) ** 2)


@pytest.mark.parametrize("pair", PAIRS)
def test_moments_are_those_of_the_formulas(pair: tuple[float, float, float, float]) -> None:
    exact = gaussian_shape.shape(**named(pair))
    kl, variance_k1 = moments(pair, k1)
    mean_k2, variance_k2 = moments(pair, k2)
    mean_k3, variance_k3 = moments(pair, k3)
    _, variance_k_lambda = moments(pair, lambda x: k_lambda(x, exact.lambda_star))
    found = (kl, variance_k1, mean_k2, variance_k2, mean_k3, variance_k3, variance_k_lambda)
    expected = (
        exact.kl_pq,
        exact.variance_k1,
        exact.mean_k2,
        exact.variance_k2,
        exact.kl_pq,
        exact.variance_k3,
        exact.variance_k_lambda,
    )
    assert np.allclose(found, expected, rtol=1e-9)


def test_variance_of_k3_keeps_its_digits_between_near_means() -> None:
    pair = gaussian_shape.shape(mean_p=0.0, std_p=1.0, mean_q=1e-4, std_q=1.0)
    assert np.isclose(pair.variance_k3, 1e-16 / 2 * (1 + 1e-8 / 3), rtol=1e-13, atol=0)


@pytest.mark.parametrize(("std_q", "finite"), [(1.414, True), (1.4143, False), (5.0, False)])
def test_chi2_ends_where_the_tail_of_q_is_too_heavy(std_q: float, finite: bool) -> None:
    pair = gaussian_shape.shape(mean_p=0.0, std_p=1.0, mean_q=0.5, std_q=std_q)
    assert np.isfinite(pair.chi2_qp) == np.isfinite(pair.variance_k3) == finite
    assert pair.reason == ""
    if not finite:
        assert pair.lambda_star == 0
        assert np.isposinf(pair.S)
        assert pair.variance_k_lambda == pair.variance_k1


def test_gaussians_so_far_apart_that_chi2_overflows() -> None:
    pair = gaussian_shape.shape(mean_p=0.0, std_p=1.0, mean_q=50.0, std_q=1.0)
    assert (pair.kl_pq, pair.variance_k1, pair.lambda_star) == (1250, 2500, 0)
    assert np.isposinf([pair.chi2_qp, pair.variance_k3, pair.S]).all()
    assert pair.variance_k_lambda == 2500


def test_equal_gaussians_have_no_best_control() -> None:
    pair = gaussian_shape.shape(mean_p=1.0, std_p=2.0, mean_q=1.0, std_q=2.0)
    assert pair.kl_pq == pair.variance_k1 == pair.variance_k3 == 0
    assert np.isnan(pair.lambda_star)
    assert pair.reason == "p and q are equal, both estimators are exact"


def test_a_deviation_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="std_q contains 0, expected standard deviations above 0"):
        gaussian_shape.shape(mean_p=0.0, std_p=1.0, mean_q=0.0, std_q=[1.0, 0.0])
