"""Gaussians, exactly: KL, chi-square and every other overlap, from means and deviations.

Everything is elementwise, one pair of univariate Gaussians per element. A diagonal Gaussian is a
product of independent ones: over its dimensions the KL adds up, and so do log(1 + chi2) and every
other `log_overlap`. The scale is the standard deviation, never the variance or its logarithm.

`multivariate_gaussian` takes full covariances, and `gaussian_shape` has the moments of k1 to k3.
"""

from __future__ import annotations

from typing import Any

from kullback.arrays import namespace, only_where, quiet, wide
from kullback.formulas.k_family import k3


def kl(*, mean_p: Any, std_p: Any, mean_q: Any, std_q: Any) -> Any:
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
        ValueError: when a standard deviation is not positive (NaN with torch and JAX).

    Example:
        >>> round(float(kl(mean_p=0.0, std_p=1.0, mean_q=1.0, std_q=2.0)), 6)
        0.443147
    """
    xp, ratio, shift, u = standardized(mean_p, std_p, mean_q, std_q)
    with quiet(xp):
        return k3(_log_variance_ratio(ratio, u, xp)) / 2 + shift**2 / 2


def chi2(*, mean_p: Any, std_p: Any, mean_q: Any, std_q: Any) -> Any:
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
        ValueError: when a standard deviation is not positive (NaN with torch and JAX).

    Example:
        >>> round(float(chi2(mean_p=1.0, std_p=1.0, mean_q=0.0, std_q=1.0)), 6)
        1.718282
    """
    overlap = log_overlap(2.0, mean_p=mean_p, std_p=std_p, mean_q=mean_q, std_q=std_q)
    xp = namespace(overlap)
    with quiet(xp):
        return xp.expm1(overlap)


def log_overlap(order: float, *, mean_p: Any, std_p: Any, mean_q: Any, std_q: Any) -> Any:
    """The logarithm of A(order) = integral of p^order q^(1 - order), from which most others follow.

    log A(a) = (h((a - 1) u) + (a - 1) h(-u) + a (a - 1) d^2 / (1 + (a - 1) u)) / 2

    with u = 1 - (std_p / std_q)^2, d = (mean_p - mean_q) / std_q and h(x) = x - log(1 + x), so that
    nothing cancels between near Gaussians. Exact; 0 between equal ones and at the orders 0 and 1,
    negative between them, positive outside. Source: any textbook, rearranged.

    Args:
        order: any finite number.
        mean_p: means of the distribution that comes first, any shape.
        std_p: its standard deviations, > 0.
        mean_q: means of the other.
        std_q: its standard deviations, > 0.

    Returns:
        One number per element; +inf where the integral does not exist. Over the dimensions of a
        diagonal Gaussian it adds.

    Raises:
        ValueError: when a standard deviation is not positive (NaN with torch and JAX).

    Example:
        >>> round(float(log_overlap(0.5, mean_p=1.0, std_p=1.0, mean_q=0.0, std_q=1.0)), 6)
        -0.125
    """
    xp, ratio, shift, u = standardized(mean_p, std_p, mean_q, std_q)
    with quiet(xp):
        spread = 1 + (order - 1) * u
        exists = spread > 0
        moved = xp.where(exists, (order - 1) * u, 0.0)
        # h(x) = k3(log(1 + x)), and 1 - u is the ratio of the variances itself.
        deviations = k3(xp.log1p(moved)) + (order - 1) * k3(_log_variance_ratio(ratio, u, xp))
        means = order * (order - 1) * shift**2 / xp.where(exists, spread, 1.0)
        return xp.where(exists, (deviations + means) / 2, xp.inf)


def _log_variance_ratio(ratio: Any, u: Any, xp: Any) -> Any:
    """log(1 - u) = 2 log(std_p / std_q), from whichever of the two has kept its digits."""
    near = xp.abs(u) < 0.5
    return xp.where(near, xp.log1p(xp.where(near, -u, 0.0)), 2 * xp.log(xp.where(near, 1.0, ratio)))


def standardized(mean_p: Any, std_p: Any, mean_q: Any, std_q: Any) -> tuple[Any, ...]:
    """Their namespace, std_p / std_q, (mean_p - mean_q) / std_q and 1 - (std_p / std_q)^2.

    Raises:
        ValueError: when a standard deviation is not positive (NaN with torch and JAX).

    Example:
        >>> [float(x) for x in standardized(1.0, 1.0, 0.0, 2.0)[1:]]
        [0.5, 0.5, 0.75]
    """
    xp = namespace(mean_p, std_p, mean_q, std_q)
    m, p, n, q = (wide(one, xp) for one in (mean_p, std_p, mean_q, std_q))
    p, q = _deviations("std_p", p, xp), _deviations("std_q", q, xp)
    return xp, p / q, (m - n) / q, (q - p) * (q + p) / q**2


def _deviations(name: str, std: Any, xp: Any) -> Any:
    def complaint(ok: Any) -> ValueError:
        return ValueError(
            f"{name} contains {std[~ok].min():.6g}, expected standard deviations above 0; take the "
            "exponential first if these are logarithms"
        )

    return only_where(std > 0, std, xp, complaint)
