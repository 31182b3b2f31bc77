"""The shape of Gaussian pairs, exactly: the moments of k1, k2 and k3, the best control, and S."""

from __future__ import annotations

from typing import Any

import numpy as np

from kullback.arrays import to_numpy
from kullback.formulas.gaussian import chi2, kl, log_overlap, standardized
from kullback.formulas.k_family import k3
from kullback.formulas.shape import Shape, best_control, shape_of

_TURNED = str.maketrans("pq", "qp")


@np.errstate(all="ignore")
def shape(*, mean_p: Any, std_p: Any, mean_q: Any, std_q: Any) -> Shape:
    """The exact shape of each pair of univariate Gaussians, with all moments of k1, k2 and k3.

    For equal deviations and m = |mean_p - mean_q| / std: KL = m^2 / 2, Var(k1) = m^2,
    Var(k2) = (2 m^4 + m^6) / 4, Var(k3) = exp(m^2) - 1 - m^2, lambda* = m^2 / (exp(m^2) - 1).

    These are numbers to read: they are NumPy's, and nothing is differentiated.

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
    given = {"mean_p": mean_p, "std_p": std_p, "mean_q": mean_q, "std_q": std_q}
    pair = {name: to_numpy(values, name) for name, values in given.items()}
    turned = {name: pair[name.translate(_TURNED)] for name in pair}
    kl_pq, kl_qp, chi2_qp = kl(**pair), kl(**turned), chi2(**turned)
    jeffreys = kl_pq + kl_qp
    lambda_star, s, reason = best_control(kl_pq, kl_qp, chi2_qp)

    _, ratio, shift, one_minus_ratio_squared = standardized(**pair)
    a, b = one_minus_ratio_squared / 2, ratio * shift
    second = 2 * a**2 + b**2
    third = 8 * a**3 + 6 * a * b**2
    fourth = 48 * a**4 + 48 * a**2 * b**2
    variance_k2 = (fourth - 4 * kl_pq * third + 2 * second**2 + 4 * kl_pq**2 * second) / 4
    # Var(k3) = Var(k1) - 2 J + chi2 with chi2 = exp(t) - 1 = k3(t) + t: what cancels, t + Var(k1)
    # - 2 J, is exactly 0 for equal deviations.
    t = log_overlap(2.0, **turned)
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
