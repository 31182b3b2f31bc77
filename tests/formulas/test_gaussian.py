"""Gaussians against quadrature, against their own limits, and where their integrals end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad

from kullback.formulas import gaussian

normal: Any = scipy.stats.norm
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


def exists(order: float, std_p: float, std_q: float) -> bool:
    return order * std_q**2 + (1 - order) * std_p**2 > 0


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("order", [-0.5, 0.25, 0.5, 1.5, 2.0])
def test_log_overlap_is_the_logarithm_of_the_integral(pair, order: float) -> None:
    mean_p, std_p, mean_q, std_q = pair
    found = gaussian.log_overlap(order, **named(pair))
    if not exists(order, std_p, std_q):
        assert np.isposinf(found)
        return
    log_p, log_q = normal(mean_p, std_p).logpdf, normal(mean_q, std_q).logpdf
    middle, width = (mean_p + mean_q) / 2, 200 * max(std_p, std_q)
    integral, _ = quad(
        lambda x: np.exp(order * log_p(x) + (1 - order) * log_q(x)),
        middle - width, middle + width,
        points=[mean_p, mean_q], limit=2000, epsabs=1e-13, epsrel=1e-12,
    )  # fmt: skip
    assert found == pytest.approx(np.log(integral), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("pair", PAIRS)
def test_the_slopes_of_log_overlap_at_its_zeros_are_the_two_kls(pair) -> None:
    step = 1e-6
    turned = named((*pair[2:], *pair[:2]))
    at_one = gaussian.log_overlap(1 + step, **named(pair)) / step
    at_zero = gaussian.log_overlap(-step, **named(pair)) / step
    assert gaussian.kl(**named(pair)) == pytest.approx(at_one, rel=1e-4)
    assert gaussian.kl(**turned) == pytest.approx(at_zero, rel=1e-4)
    assert gaussian.log_overlap(0.0, **named(pair)) == pytest.approx(0, abs=1e-15)
    assert gaussian.log_overlap(1.0, **named(pair)) == 0


def test_kl_keeps_its_digits_between_near_deviations() -> None:
    ratio = 1 + 2.0**-30
    value = gaussian.kl(mean_p=0.0, std_p=ratio, mean_q=0.0, std_q=1.0)
    assert np.isclose(value, 2.0**-60, rtol=1e-8, atol=0)  # eps^2 + O(eps^3)
    chi2 = gaussian.chi2(mean_p=0.0, std_p=ratio, mean_q=0.0, std_q=1.0)
    u = 2.0**-29 + 2.0**-60  # 1 - ratio^2 would have lost the second term
    assert np.isclose(chi2, u**2 / 2, rtol=1e-12, atol=0)


def test_a_diagonal_gaussian_is_the_sum_of_its_dimensions() -> None:
    rng = np.random.default_rng(0)
    mean_p, mean_q = rng.normal(size=(2, 3, 4))
    std_p, std_q = rng.uniform(0.8, 1.0, size=(2, 3, 4))
    pairs = {"mean_p": mean_p, "std_p": std_p, "mean_q": mean_q, "std_q": std_q}
    variance_p, variance_q = std_p**2, std_q**2
    textbook = 0.5 * np.sum(
        variance_p / variance_q
        + (mean_q - mean_p) ** 2 / variance_q
        - 1
        + np.log(variance_q / variance_p),
        axis=-1,
    )
    assert np.allclose(np.sum(gaussian.kl(**pairs), axis=-1), textbook, rtol=1e-12)
    assert gaussian.kl(**pairs).shape == (3, 4)


@pytest.mark.parametrize("std", [0.0, -0.7, np.nan])
def test_a_deviation_that_is_not_positive_is_refused(std: float) -> None:
    for function in (gaussian.kl, gaussian.chi2):
        with pytest.raises(ValueError, match=r"std_q contains .*expected standard deviations"):
            function(mean_p=0.0, std_p=1.0, mean_q=0.0, std_q=[1.0, std])
