"""The shape of a pair of distributions: which of k1 and k3 is the less noisy, in one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.arrays import to_numpy
from kullback.formulas import distributions
from kullback.formulas.categorical import lined_up
from kullback.formulas.divergences import divergence, probabilities
from kullback.formulas.k_family import k1, k2, k3, k_lambda

Number = Any  # a float for one pair, an array for many


@dataclass(frozen=True, slots=True)
class Shape:
    """Exact moments of a pair for x ~ p: plain floats, or one number per row.

    With r = q/p, J = KL(p||q) + KL(q||p) and chi2 = Var_p(r), the covariance of r and log r
    under p is J, hence Var(k_lambda) = Var(k1) - 2 lam J + lam^2 chi2. It is least at
    lam = J / chi2, and Var(k3) < Var(k1) exactly when S = chi2 / (2 J) < 1.

    Attributes:
        kl_pq: KL(p||q), nats; also the mean of k1 and of k3.
        kl_qp: KL(q||p), nats.
        jeffreys: J, nats.
        chi2_qp: chi2(q||p) = Var_p(r), infinite where q has mass outside the support of p.
        mean_k2: E_p[k2] = (Var(k1) + KL(p||q)^2) / 2.
        variance_k1: Var_p(k1); NaN where KL(p||q) is infinite, as are the next two.
        variance_k2: Var_p(k2).
        variance_k3: Var_p(k3).
        lambda_star: J / chi2, the best lam; NaN where `reason` says why, as are the last two.
        variance_k_lambda: Var_p(k_lambda) at lambda_star.
        S: chi2 / (2 J): below 1 k3 is the less noisy, above 1 k1.
        reason: why numbers are missing; empty when none are.

    Example:
        >>> smooth = shape([0.5, 0.5], [0.6, 0.4])
        >>> round(smooth.jeffreys, 6), round(smooth.chi2_qp, 6), round(smooth.lambda_star, 6)
        (0.040547, 0.04, 1.013663)
    """

    kl_pq: Number
    kl_qp: Number
    jeffreys: Number
    chi2_qp: Number
    mean_k2: Number
    variance_k1: Number
    variance_k2: Number
    variance_k3: Number
    lambda_star: Number
    variance_k_lambda: Number
    S: Number
    reason: str


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def shape(p: Any, q: Any) -> Shape:
    """The exact shape of two categorical distributions, or of two Gaussians.

    S = chi2(q||p) / (2 J),  lambda* = J / chi2(q||p),  J = KL(p||q) + KL(q||p)

    It takes whole distributions, of any of the three array libraries, and gives NumPy's numbers,
    to read and not to differentiate. From sampled tokens S cannot be read
    off, since the categories that decide it are the ones that were not drawn.

    Args:
        p: [..., categories] probabilities of the distribution that samples; or a distribution of
            torch.distributions or a frozen one of scipy.stats: Gaussians of one dimension, and
            those of finitely many outcomes.
        q: [..., categories] probabilities of the other; or a distribution of the same library.

    Returns:
        A `Shape` whose fields have the leading axes of the input.

    Raises:
        ValueError: when a row is no distribution, the two sides cannot be lined up, or the
            distributions are others than these.

    Example:
        >>> hole = shape([0.001, 0.4995, 0.4995], [0.1, 0.45, 0.45])
        >>> round(hole.S, 3), round(hole.variance_k1, 3), round(hole.variance_k3, 3)
        (10.521, 0.022, 8.9)
        >>> from scipy.stats import norm
        >>> round(shape(norm(0, 1), norm(1, 1)).variance_k3, 3)
        0.718
    """
    if distributions.is_distribution(p) or distributions.is_distribution(q):
        return _of_objects(p, q)
    sampler, other = (
        probabilities(name, to_numpy(values, name)) for name, values in (("p", p), ("q", q))
    )
    lined_up(sampler, other)
    log_q_over_p = np.log(other) - np.log(sampler)

    def mean(values: NDArray[Any]) -> NDArray[Any]:
        return np.sum(np.where(sampler > 0, sampler * values, 0.0), axis=-1, keepdims=True)

    def variance(values: NDArray[Any]) -> NDArray[Any]:
        return mean((values - mean(values)) ** 2)[..., 0]

    kl_pq, kl_qp = divergence(sampler, other), divergence(other, sampler)
    chi2_qp = divergence(other, sampler, "chi2")
    lambda_star, s, reason = best_control(kl_pq, kl_qp, chi2_qp)
    second = k2(log_q_over_p)
    return shape_of(
        kl_pq=kl_pq,
        kl_qp=kl_qp,
        jeffreys=kl_pq + kl_qp,
        chi2_qp=chi2_qp,
        mean_k2=mean(second)[..., 0],
        variance_k1=variance(k1(log_q_over_p)),
        variance_k2=variance(second),
        variance_k3=variance(k3(log_q_over_p)),
        lambda_star=lambda_star,
        # From the samples, not from Var(k1) - J^2 / chi2, which cancels to about 1e-17.
        variance_k_lambda=variance(k_lambda(log_q_over_p, lambda_star[..., None])),
        S=s,
        reason=reason,
    )


def _of_objects(p: Any, q: Any) -> Shape:
    """The shape of two distribution objects, by what is known of their families."""
    from kullback.formulas import gaussian_shape

    left, right = distributions.read(p, q)
    if isinstance(left, distributions.Outcomes) and isinstance(right, distributions.Outcomes):
        return shape(left.probabilities, right.probabilities)
    one, other = (
        None if isinstance(side, distributions.Outcomes) else side for side in (left, right)
    )
    if one is None or other is None or one.joined or other.joined:
        raise ValueError(
            f"no closed form of the shape is known for {distributions.name(p)} and "
            f"{distributions.name(q)}: it is for Gaussians of one dimension, and for two "
            "distributions of finitely many outcomes"
        )
    return gaussian_shape.shape(
        mean_p=one.mean, std_p=one.scale, mean_q=other.mean, std_q=other.scale
    )


def shape_of(reason: str, **numbers: NDArray[Any]) -> Shape:
    """A `Shape` of these numbers, with plain floats where there is one pair only."""
    return Shape(
        reason=reason,
        **{name: float(x) if np.ndim(x) == 0 else x for name, x in numbers.items()},
    )


@np.errstate(divide="ignore", invalid="ignore")
def best_control(
    kl_pq: NDArray[np.float64], kl_qp: NDArray[np.float64], chi2_qp: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """lambda* and S from the three divergences, and why some of them do not exist.

    lambda* = J / chi2,  S = chi2 / (2 J)

    Where chi2 alone is infinite (a Gaussian q much wider than p) lambda* is 0 and S infinite.

    Example:
        >>> [float(x) for x in best_control(np.array(1.0), np.array(2.0), np.array(12.0))[:2]]
        [0.25, 2.0]
    """
    jeffreys = kl_pq + kl_qp
    causes = {
        "q has no mass where p has some, KL(p||q) is infinite": np.isinf(kl_pq),
        "q has mass where p has none, r - 1 does not have mean zero": np.isinf(kl_qp),
        "p and q are equal, both estimators are exact": chi2_qp == 0,
    }
    exists = np.isfinite(jeffreys) & (chi2_qp > 0)
    reason = "; ".join(
        text if np.size(rows) == 1 else f"{text} ({np.count_nonzero(rows)} of {np.size(rows)} rows)"
        for text, rows in causes.items()
        if np.any(rows)
    )
    return (
        np.where(exists, jeffreys / chi2_qp, np.nan),
        np.where(exists, chi2_qp / (2 * jeffreys), np.nan),
        reason,
    )
