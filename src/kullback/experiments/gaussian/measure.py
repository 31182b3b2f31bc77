"""Moments of k1, k2 and k3 between normal policies: by quadrature, and of draws.

The estimators and divergences are kullback's; their moments are integrals of them, so that the
closed forms of the document are checked and not repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kullback as kb

NODES = 160  # of Gauss-Hermite quadrature: exact to 1e-12 for all that is shown
DRAWS = 500_000  # as in the document
MEANS = np.linspace(0.01, 2.5, 60)  # of p, as in the document

Values = NDArray[np.float64]
Formula = Callable[[Values], Values]
FORMULAS: dict[str, Formula] = {"k1": kb.k1, "k2": kb.k2, "k3": kb.k3}


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean, variance and fourth central moment of one sample's value."""

    mean: float
    variance: float
    fourth: float

    @property
    def sd(self) -> float:
        """Standard deviation of one sample."""
        return float(np.sqrt(self.variance))

    def error_of_mean(self, draws: int) -> float:
        """Standard error of a mean of so many."""
        return float(np.sqrt(self.variance / draws))

    def error_of_variance(self, draws: int) -> float:
        """Standard error of a sample variance of so many."""
        return float(np.sqrt((self.fourth - self.variance**2) / draws))


def log_q_over_p(x: Values, p: tuple[float, float], q: tuple[float, float]) -> Values:
    """The log density of q over that of p, each a mean and a standard deviation."""
    (mean_p, sd_p), (mean_q, sd_q) = p, q
    return np.log(sd_p / sd_q) + ((x - mean_p) / sd_p) ** 2 / 2 - ((x - mean_q) / sd_q) ** 2 / 2


@cache
def _nodes() -> tuple[Values, Values]:
    """Points and weights of the standard normal."""
    z, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return z, weights / np.sum(weights)


def moments(formula: Formula, p: tuple[float, float], q: tuple[float, float]) -> Moments:
    """Exact moments of a formula of log q/p for x ~ p, where they are finite."""
    z, weights = _nodes()
    values = formula(log_q_over_p(p[0] + p[1] * z, p, q))
    mean = float(weights @ values)
    off = values - mean
    return Moments(mean, float(weights @ off**2), float(weights @ off**4))


@dataclass(frozen=True, slots=True)
class Pair:
    """KL, variances of k1 and k3, S and λ* of two normal policies of one dimension."""

    kl: float
    k1: float
    k3: float
    S: float
    lambda_star: float


def pair(p: tuple[float, float], q: tuple[float, float]) -> Pair:
    """The shape of a pair: Var(k3) = Var(k1) − 2J + χ², which is infinite where χ² is."""
    from scipy.stats import norm

    one, other = norm(*p), norm(*q)
    kl = float(kb.divergence(one, other))
    jeffreys = kl + float(kb.divergence(other, one))
    chi2 = float(kb.divergence(other, one, "chi2"))
    k1 = moments(kb.k1, p, q).variance
    s = chi2 / (2 * jeffreys)
    return Pair(kl, k1, k1 - 2 * jeffreys + chi2, s, 0.0 if np.isinf(s) else 1 / (2 * s))


def crossover() -> tuple[float, float]:
    """The shift at which k1 and k3 are equally noisy, and its KL."""
    from scipy.optimize import brentq

    found: Any = brentq(lambda m: pair((0.0, 1.0), (m, 1.0)).S - 1, 0.5, 2.0, xtol=1e-14)
    shift = float(found)
    return shift, shift**2 / 2


@dataclass(frozen=True, slots=True)
class Drawn:
    """A mean and a variance of draws, beside the exact ones."""

    exact: Moments
    mean: float
    variance: float
    draws: int

    @property
    def z_of_mean(self) -> float:
        """How many exact standard errors the mean is off."""
        return (self.mean - self.exact.mean) / self.exact.error_of_mean(self.draws)

    @property
    def z_of_variance(self) -> float:
        """How many exact standard errors the variance is off."""
        off = self.variance - self.exact.variance
        return off / self.exact.error_of_variance(self.draws)


def draw(mean: float, formula: Formula, noise: Values) -> Drawn:
    """A formula over p = N(mean, 1) against q = N(0, 1), over draws of p and exactly."""
    p, q = (mean, 1.0), (0.0, 1.0)
    values = formula(log_q_over_p(mean + noise, p, q))
    exact = moments(formula, p, q)
    return Drawn(exact, float(np.mean(values)), float(np.var(values)), len(noise))


def noise(seed: int) -> Values:
    """The standard normal draws that every mean of p shares, as in the document."""
    return np.random.default_rng(seed).normal(size=DRAWS)


def k_star(lam: float) -> Formula:
    """k_lambda at its best lambda."""
    return lambda log_ratio: kb.k_lambda(log_ratio, lam)


def turned(log_ratio: Any) -> Any:
    """KL(q‖p) of samples of p without its control: r log r."""
    return np.exp(log_ratio) * log_ratio


def independent(dimensions: int, shift: float) -> tuple[float, float, float]:
    """Relative sd of k1, of k3 of the joint ratio and of k3 summed over independent dimensions.

    The log-ratio of N(m, I) is that of one dimension with the length of m as shift.
    """
    total = dimensions * shift**2 / 2
    joint = pair((0.0, 1.0), (float(np.sqrt(dimensions)) * shift, 1.0))
    summed = dimensions * pair((0.0, 1.0), (shift, 1.0)).k3
    k1, k3, k3_summed = (float(np.sqrt(v)) / total for v in (joint.k1, joint.k3, summed))
    return k1, k3, k3_summed
