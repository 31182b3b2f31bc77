"""Gaussians, exactly: KL, chi-square and the moments of k1, k2 and k3 from means and deviations.

Everything is elementwise, one pair of univariate Gaussians per element. A diagonal Gaussian is a
product of independent ones: over its dimensions KL(p||q), KL(q||p) and Var(k1) add up, and so
does log(1 + chi2). The scale is the standard deviation, never the variance or its logarithm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.formulas.k_family import k3
from kullback.formulas.shape import Shape, best_control, shape_of


def kl(
    *, mean_p: ArrayLike, std_p: ArrayLike, mean_q: ArrayLike, std_q: ArrayLike
) -> NDArray[np.float64]:
    """The KL divergence of each pair of univariate Gaussians.

    KL(p||q) = k3(2 log(std_p / std_q)) / 2 + ((mean_p - mean_q) / std_q)^2 / 2

    Exact, never negative. The first term is the usual log(std_q / std_p) + (std_p / std_q)^2 / 2
    - 1/2, without the cancellation. Source: any textbook, rearranged.

    Args:
        mean_p: means of the distribution that comes first, any shape.
        std_p: its standard deviations, > 0.
        mean_q: means of the other.
        std_q: its standard deviations, > 0.

    Returns:
        One number per element, nats; sum over the last axis for a diagonal Gaussian.

    Raises:
        ValueError: when a standard deviation is not positive.

    Example:
        >>> round(float(kl(mean_p=0.0, std_p=1.0, mean_q=1.0, std_q=2.0)), 6)
        0.443147
    """
    ratio, shift, _ = _standardized(mean_p, std_p, mean_q, std_q)
    return k3(2 * np.log(ratio)) / 2 + shift**2 / 2


@np.errstate(over="ignore")
def chi2(
    *, mean_p: ArrayLike, std_p: ArrayLike, mean_q: ArrayLike, std_q: ArrayLike
) -> NDArray[np.float64]:
    """The chi-square divergence of each pair of univariate Gaussians.

    chi2(p||q) = Var_q(p/q) = exp(d^2 / (1 + u)) / sqrt(1 - u^2) - 1

    with u = 1 - (std_p / std_q)^2 and d = (mean_p - mean_q) / std_q. Exact, never negative,
    infinite from std_p = sqrt(2) std_q on: p then has the heavier tail.
    Var_p(q/p), which decides between k1 and k3, is this with p and q exchanged.

    Args:
        mean_p: means of the distribution that comes first, any shape.
        std_p: its standard deviations, > 0.
        mean_q: means of the other.
        std_q: its standard deviations, > 0.

    Returns:
        One number per element; for a diagonal Gaussian log(1 + chi2) adds over the last axis.

    Raises:
        ValueError: when a standard deviation is not positive.

    Example:
        >>> round(float(chi2(mean_p=1.0, std_p=1.0, mean_q=0.0, std_q=1.0)), 6)
        1.718282
    """
    return np.expm1(_log_one_plus_chi2(mean_p, std_p, mean_q, std_q))


@np.errstate(over="ignore", invalid="ignore")
def shape(*, mean_p: ArrayLike, std_p: ArrayLike, mean_q: ArrayLike, std_q: ArrayLike) -> Shape:
    """The exact shape of each pair of univariate Gaussians, with all moments of k1, k2 and k3.

    For equal deviations and m = |mean_p - mean_q| / std: KL = m^2 / 2, Var(k1) = m^2,
    Var(k2) = (2 m^4 + m^6) / 4, Var(k3) = exp(m^2) - 1 - m^2, lambda* = m^2 / (exp(m^2) - 1).

    In general log r = a Z^2 + b Z + c with Z standard normal under p, whose cumulants are known.
    Source: cumulants of a quadratic form; for equal deviations Schulman 2020 has the first cases.

    Args:
        mean_p: means of the distribution that samples, any shape.
        std_p: its standard deviations, > 0.
        mean_q: means of the other.
        std_q: its standard deviations, > 0.

    Returns:
        A `Shape` of one number per element; chi2 and Var(k3) are infinite, lambda* 0, from
        std_q = sqrt(2) std_p on.

    Raises:
        ValueError: when a standard deviation is not positive.

    Example:
        >>> pair = shape(mean_p=0.0, std_p=1.0, mean_q=1.0, std_q=1.0)
        >>> round(pair.kl_pq, 6), round(pair.variance_k3, 6), round(pair.S, 6)
        (0.5, 0.718282, 0.859141)
    """
    pair = {"mean_p": mean_p, "std_p": std_p, "mean_q": mean_q, "std_q": std_q}
    turned = {"mean_p": mean_q, "std_p": std_q, "mean_q": mean_p, "std_q": std_p}
    kl_pq, kl_qp, chi2_qp = kl(**pair), kl(**turned), chi2(**turned)
    jeffreys = kl_pq + kl_qp
    lambda_star, s, reason = best_control(kl_pq, kl_qp, chi2_qp)

    ratio, shift, one_minus_ratio_squared = _standardized(**pair)
    a, b = one_minus_ratio_squared / 2, ratio * shift
    second = 2 * a**2 + b**2
    third = 8 * a**3 + 6 * a * b**2
    fourth = 48 * a**4 + 48 * a**2 * b**2
    variance_k2 = (fourth - 4 * kl_pq * third + 2 * second**2 + 4 * kl_pq**2 * second) / 4
    # Var(k3) = Var(k1) - 2 J + chi2 with chi2 = exp(t) - 1 = k3(t) + t: what cancels, t + Var(k1)
    # - 2 J, is exactly 0 for equal deviations.
    t = _log_one_plus_chi2(**turned)
    variance_k3 = np.where(np.isinf(t), np.inf, k3(t) + (t + second - 2 * jeffreys))
    # Var(k_lambda*) is Var(k1) - J^2 / chi2 and Var(k3) - (chi2 - J)^2 / chi2: from the smaller.
    from_k1 = second - lambda_star * jeffreys
    from_k3 = variance_k3 - (chi2_qp - jeffreys) * (1 - lambda_star)
    return shape_of(
        kl_pq=kl_pq,
        kl_qp=kl_qp,
        jeffreys=jeffreys,
        chi2_qp=chi2_qp,
        mean_k2=(second + kl_pq**2) / 2,
        variance_k1=second,
        variance_k2=variance_k2,
        variance_k3=variance_k3,
        lambda_star=lambda_star,
        variance_k_lambda=np.where(variance_k3 < second, from_k3, from_k1),
        S=s,
        reason=reason,
    )


def _log_one_plus_chi2(
    mean_p: ArrayLike, std_p: ArrayLike, mean_q: ArrayLike, std_q: ArrayLike
) -> NDArray[Any]:
    _, shift, u = _standardized(mean_p, std_p, mean_q, std_q)
    exists = u > -1
    bounded = np.where(exists, u, 0.0)
    return np.where(exists, shift**2 / (1 + bounded) - np.log1p(-(bounded**2)) / 2, np.inf)


def _standardized(
    mean_p: ArrayLike, std_p: ArrayLike, mean_q: ArrayLike, std_q: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """std_p / std_q, (mean_p - mean_q) / std_q and 1 - (std_p / std_q)^2, after a check."""
    p, q = np.asarray(std_p, dtype=np.float64), np.asarray(std_q, dtype=np.float64)
    for name, std in (("std_p", p), ("std_q", q)):
        if not np.all(std > 0):
            raise ValueError(
                f"{name} contains {np.min(std):.6g}, expected standard deviations above 0; "
                "take the exponential first if these are logarithms"
            )
    shift = (np.asarray(mean_p, dtype=np.float64) - np.asarray(mean_q, dtype=np.float64)) / q
    return p / q, shift, (q - p) * (q + p) / q**2
