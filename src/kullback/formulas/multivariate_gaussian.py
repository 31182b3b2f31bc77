"""Gaussians with full covariances: their KL, and the coordinates in which they fall apart."""

from __future__ import annotations

from typing import Any

from kullback.arrays import namespace, wide
from kullback.formulas.k_family import k3


def kl(*, mean_p: Any, cov_p: Any, mean_q: Any, cov_q: Any) -> Any:
    """The KL divergence of Gaussians with full covariances.

    KL(p||q) = (sum_i k3(2 log M_ii) + sum_{i>j} M_ij^2 + |d|^2) / 2

    with M = L_q^-1 L_p and d = L_q^-1 (mean_p - mean_q), L the Cholesky factors. Exact, never
    negative: M is triangular, so that the usual trace, dimension and determinants, which cancel
    between near Gaussians, come apart into terms that are never negative. It can be
    differentiated, where p = q too. Source: any textbook, rearranged.

    Args:
        mean_p: [..., n] mean of the distribution that comes first.
        cov_p: [..., n, n] its covariance, symmetric and positive definite.
        mean_q: [..., n] mean of the other.
        cov_q: [..., n, n] its covariance.

    Returns:
        [...] nats, in float64 where the device has it.

    Raises:
        ValueError: when shapes do not fit, or a covariance is not positive definite (NaN or the
            library's own error with torch and JAX).

    Example:
        >>> cov = [[1.0, 0.5], [0.5, 2.0]]
        >>> round(float(kl(mean_p=[0, 0], cov_p=cov, mean_q=[1, 0], cov_q=[[1, 0], [0, 1]])), 6)
        0.720192
    """
    xp, m, d = _whitened(mean_p, cov_p, mean_q, cov_q)
    diagonal = xp.diagonal(m, 0, -2, -1)
    beside = xp.sum(xp.tril(m, -1) ** 2, axis=(-2, -1))
    return (xp.sum(k3(2 * xp.log(diagonal)), axis=-1) + beside + xp.sum(d**2, axis=-1)) / 2


def principal(*, mean_p: Any, cov_p: Any, mean_q: Any, cov_q: Any) -> tuple[Any, Any]:
    """Means and deviations of p in coordinates where q is standard and both are independent.

    M = L_q^-1 L_p = U diag(std) V', mean = U' L_q^-1 (mean_p - mean_q)

    No divergence depends on coordinates, so all of the pair follow from `gaussian` with these
    means and deviations against 0 and 1, over whose last axis they add up.

    Args:
        mean_p: [..., n] mean of the distribution that comes first.
        cov_p: [..., n, n] its covariance, symmetric and positive definite.
        mean_q: [..., n] mean of the other.
        cov_q: [..., n, n] its covariance.

    Returns:
        The means and the standard deviations of p, [..., n] each.

    Raises:
        ValueError: as `kl` does.

    Example:
        >>> mean, std = principal(mean_p=[1, 0], cov_p=[[4, 0], [0, 1]], mean_q=[0, 0],
        ...                       cov_q=[[1, 0], [0, 1]])
        >>> [round(float(x), 6) for x in std]
        [2.0, 1.0]
    """
    xp, m, d = _whitened(mean_p, cov_p, mean_q, cov_q)
    u, std, _ = xp.linalg.svd(m, full_matrices=False)
    return xp.sum(u * d[..., :, None], axis=-2), std


def _whitened(mean_p: Any, cov_p: Any, mean_q: Any, cov_q: Any) -> tuple[Any, Any, Any]:
    """Their namespace, M and d."""
    xp = namespace(mean_p, cov_p, mean_q, cov_q)
    m, p, n, q = (wide(one, xp) for one in (mean_p, cov_p, mean_q, cov_q))
    if not p.ndim >= 2 <= q.ndim or len({m.shape[-1:], n.shape[-1:], *_squares(p, q)}) > 1:
        raise ValueError(
            f"means of shapes {tuple(m.shape)} and {tuple(n.shape)} and covariances of "
            f"{tuple(p.shape)} and {tuple(q.shape)}: expected [..., n] and [..., n, n], one n"
        )
    below_p, below_q = _cholesky("cov_p", p, xp), _cholesky("cov_q", q, xp)
    d = xp.linalg.solve(below_q, (m - n)[..., None])[..., 0]
    return xp, xp.linalg.solve(below_q, below_p), d


def _squares(*covariances: Any) -> set[Any]:
    return {size for one in covariances for size in (one.shape[-1:], one.shape[-2:-1])}


def _cholesky(name: str, covariance: Any, xp: Any) -> Any:
    try:
        return xp.linalg.cholesky(covariance)
    except getattr(xp.linalg, "LinAlgError", ()) as error:  # JAX has none: it gives NaN
        raise ValueError(f"{name} is not positive definite") from error
