"""The point of ``auto``: k_λ, drawn back to k1 where the two disagree by more than noise does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.estimation.interval import ratio_error

FEWEST = 5.0  # effective clusters; a coefficient fitted to fewer is noise
OWNED = 0.75  # of the squares of r − 1: a cluster with more has met what no other has
FLAT = 1e-10  # of the squares of r − 1: a spread below is rounding, and its coefficient nonsense
# By R = se(k1)/se(k_λ): up to a standard errors of disagreement k_λ stands, from b on k1. Of the
# linear tapers whose worst hole costs at most 1.1 times what any rule must lose, these lose least
# where there is no hole (tests/estimation/test_tapered.py has the integrals).
KNOTS = np.array(
    [
        # R, a, b
        (1.0, 0.0, 3.5),
        (3.0, 0.6, 3.9),
        (7.0, 1.1, 4.7),
        (14.0, 1.7, 5.0),
        (28.0, 2.3, 5.2),
        (100.0, 3.2, 5.7),
        (1000.0, 4.5, 6.5),
    ]
)


class Tapered(NamedTuple):
    """A mean as sums by cluster, and how it was chosen.

    Args:
        above: k1 + wλ(r − 1), summed by cluster, [clusters]; over the sizes it is the mean.
        untapered: The same with w = 1.
        lam: wλ, the coefficient of r − 1 in the mean: 0 is k1, 1 is k3.
        full: λ, before the taper.
        disagreement: k1 − k3 in standard errors of k1, as a normal score; positive where k3 lacks
            mass of q.
    """

    above: NDArray[np.float64]
    untapered: NDArray[np.float64]
    lam: float
    full: float
    disagreement: float


def tapered(
    k1: NDArray[np.float64],
    k3: NDArray[np.float64],
    sizes: NDArray[np.float64],
    *,
    effective: float,
) -> Tapered:
    """Between k1 and k_λ, as far as the data allow to tell which of the two is better.

        m = k1 + w(z, R) λ (r − 1),   λ = −Cov(k1, r − 1)/Var(r − 1),   z = (k1 − k3)/se(k1)

    Means, covariances and errors are those of the ratio Σ x / Σ size over clusters. λ is
    cross-fitted: each cluster takes that of all the others, so without the taper the mean is as
    unbiased as k1. Where one cluster owns three quarters of the variance of r − 1, it has met a
    hole that no other has, and all take the λ of all clusters, whose bias is of the order of
    1/clusters.

    w falls from 1 to 0 as z goes from a to b, which depend on R = se(k1)/se(k_λ): what is lost
    where z is noise grows with R, what is lost where it is a hole does not. No rule can tell the
    two apart, and every rule loses: this one at most about 1.1 times what it must. If q has mass
    that was not sampled the mean leans low, by at most 1.2, 1.9 or 2.5 se(k1) at R = 7, 28 or 100;
    k1 alone does not.

    Args:
        k1: Sum of k1 over each cluster, [clusters].
        k3: Sum of k3 over each cluster; beyond all floats where r is.
        sizes: Tokens or sequences of each cluster.
        effective: Effective number of clusters; below five the mean is that of k1.

    Example:
        >>> log_r = np.linspace(-0.3, 0.3, 64)
        >>> k1, k3 = -log_r, np.expm1(log_r) - log_r
        >>> found = tapered(k1, k3, np.ones(64), effective=64.0)
        >>> round(found.lam, 3), round(float(found.above.sum() / 64), 4)
        (0.985, 0.0155)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        control = k3 - k1
    if effective < FEWEST or not np.isfinite(control).all() or not np.isfinite(k1).all():
        return Tapered(k1, k1, 0.0, 0.0, 0.0)
    full = _coefficient(k1, control, sizes)
    owned = _owned(control, sizes)
    untapered = k1 + (full if owned else _cross_fitted(k1, control, sizes)) * control
    error, least = ratio_error(k1, sizes), ratio_error(k1 + full * control, sizes, fitted=2)
    disagreement = _score(-control.sum() / sizes.sum(), error, effective - 1)
    weight = _weight(disagreement, error / least if least > 0 else np.inf)
    return Tapered(k1 + weight * (untapered - k1), untapered, weight * full, full, disagreement)


def _coefficient(
    k1: NDArray[np.float64], control: NDArray[np.float64], sizes: NDArray[np.float64]
) -> float:
    """λ with the least error of Σ (k1 + λ·control) / Σ size; 0 where the control is constant."""
    total = sizes.sum()
    if not total > 0:
        return 0.0
    a, b = (values - values.sum() / total * sizes for values in (k1, control))
    spread = float((b * b).sum())
    return -float((a * b).sum()) / spread if spread > FLAT * float((control**2).sum()) else 0.0


def _cross_fitted(
    k1: NDArray[np.float64], control: NDArray[np.float64], sizes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The λ of each cluster from all the others, [clusters]."""

    def without(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values.sum() - values

    with np.errstate(divide="ignore", invalid="ignore"):
        means = without(k1) / without(sizes), without(control) / without(sizes)
        crossed = without(k1 * control) + means[0] * means[1] * without(sizes**2)
        crossed -= means[0] * without(control * sizes) + means[1] * without(k1 * sizes)
        spread = without(control**2) + means[1] ** 2 * without(sizes**2)
        spread -= 2 * means[1] * without(control * sizes)
        return np.where(spread > FLAT * without(control**2), -crossed / spread, 0.0)


def _owned(control: NDArray[np.float64], sizes: NDArray[np.float64]) -> bool:
    """Whether one cluster has most of the spread of the control."""
    squares = (control - control.sum() / sizes.sum() * sizes) ** 2
    return bool(squares.max() > OWNED * squares.sum())


def _score(difference: float, error: float, degrees: float) -> float:
    """Student's t of a difference as the normal score of the same tail."""
    from scipy.special import ndtri, stdtr

    if not error > 0:
        return float(np.sign(difference)) * (np.inf if difference else 0.0)
    t = difference / error
    return float(-np.sign(t) * ndtri(stdtr(degrees, -abs(t))))


def _weight(disagreement: float, gain: float) -> float:
    """w: 1 below a, 0 from b on, where k1 is so many times noisier than k_λ."""
    place = np.log(np.clip(gain, 1.0, KNOTS[-1, 0]))
    a, b = (np.interp(place, np.log(KNOTS[:, 0]), KNOTS[:, i]) for i in (1, 2))
    return float(np.clip((b - disagreement) / (b - a), 0.0, 1.0))
