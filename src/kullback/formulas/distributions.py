"""Distribution objects of torch.distributions and scipy.stats, to what is known of them exactly.

Both are recognized only where they are loaded already: no object of theirs can exist elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kullback.arrays import namespace, quiet, wide
from kullback.formulas import gaussian, multivariate_gaussian

MOST_OUTCOMES = 2**20  # that a distribution of SciPy is enumerated over


class Normals(NamedTuple):
    """Gaussians: one or many of one dimension, or with a covariance over the last axis.

    Args:
        mean: [...] or, with a covariance, [..., n].
        scale: The standard deviations [...], or the covariances [..., n, n].
        joined: How many of the last axes of ``mean`` are dimensions of one Gaussian.
        full: Whether ``scale`` holds covariances.
    """

    mean: Any
    scale: Any
    joined: int
    full: bool


class Outcomes(NamedTuple):
    """Finitely many outcomes: [..., categories] probabilities, from ``first`` on."""

    probabilities: Any
    first: int


def is_distribution(value: Any) -> bool:
    """Whether it is an object of torch.distributions, or a frozen one of scipy.stats.

    Example:
        >>> from scipy.stats import norm
        >>> is_distribution(norm(0, 1)), is_distribution([0.5, 0.5])
        (True, False)
    """
    return _is_torch(value) or _is_scipy(value)


def _is_torch(value: Any) -> bool:
    module = sys.modules.get("torch.distributions")
    return isinstance(value, getattr(module, "Distribution", ()))


def _is_scipy(value: Any) -> bool:
    module = type(value).__module__.partition(".stats.")[0]
    return module == "scipy" and type(value).__name__.endswith("_frozen")


def read(p: Any, q: Any) -> tuple[Normals | Outcomes | None, Normals | Outcomes | None]:
    """Both objects as what is known exactly of their families; None for other families.

    Raises:
        ValueError: They are of two libraries.

    Example:
        >>> from scipy.stats import norm
        >>> read(norm(1, 1), norm(0, 1))[0].mean
        np.float64(1.0)
    """
    if _is_torch(p) != _is_torch(q) or not (is_distribution(p) and is_distribution(q)):
        raise ValueError(
            f"p is a {type(p).__name__} and q a {type(q).__name__}: give two distributions of "
            "one library"
        )
    left, right = _read(p), _read(q)
    if isinstance(left, Outcomes) and isinstance(right, Outcomes):
        return _lined_up(left, right)
    return left, right


def registered_kl(p: Any, q: Any) -> Any:
    """KL(p||q) from the table of torch.distributions; None if it is not there."""
    if not _is_torch(p):
        return None
    try:
        return sys.modules["torch"].distributions.kl_divergence(p, q)
    except NotImplementedError:
        return None


def name(one: Any) -> str:
    """What a person calls the family of a distribution.

    Example:
        >>> from scipy.stats import beta
        >>> name(beta(1, 2))
        'beta'
    """
    return getattr(getattr(one, "dist", None), "name", None) or type(one).__name__


def _read(one: Any) -> Normals | Outcomes | None:
    return _read_torch(one) if _is_torch(one) else _read_scipy(one)


def _read_torch(one: Any, joined: int = 0) -> Normals | Outcomes | None:
    torch = sys.modules["torch"].distributions
    if isinstance(one, torch.Independent):
        inner = _read_torch(one.base_dist, joined + one.reinterpreted_batch_ndims)
        return inner if isinstance(inner, Normals) and not inner.full else None
    if isinstance(one, torch.Normal) and type(one).__name__ == "Normal":
        return Normals(one.loc, one.scale, joined, full=False)
    if isinstance(one, torch.MultivariateNormal | torch.LowRankMultivariateNormal):
        return Normals(one.loc, one.covariance_matrix, 1, full=True)
    if isinstance(one, torch.OneHotCategorical):
        return _read_torch(one._categorical)
    if isinstance(one, torch.Categorical):
        return Outcomes(_probabilities(one, lambda logits: logits, lambda probs: probs), 0)
    if isinstance(one, torch.Bernoulli) and not joined:
        stack = partial(sys.modules["torch"].stack, dim=-1)
        two = _probabilities(one, lambda z: stack([0 * z, z]), lambda p: stack([1 - p, p]))
        return Outcomes(two, 0)
    return None


def _probabilities(one: Any, logits: Callable[[Any], Any], probs: Callable[[Any], Any]) -> Any:
    """The probabilities of all outcomes, from whichever of the two the object was made of.

    The other one is not as good: float32 probabilities are 0 where a logit is 100 below the rest,
    and torch's logits of a probability of 0 are those of 1e-7.
    """
    xp = sys.modules["torch"]
    given = vars(one).get("logits")
    if given is not None and one._param is given:
        return xp.softmax(logits(wide(given, xp)), dim=-1)
    return probs(one.probs)


def _read_scipy(one: Any) -> Normals | Outcomes | None:
    if type(one).__name__ == "multivariate_normal_frozen":
        return Normals(one.mean, one.cov_object.covariance, 1, full=True)
    family = getattr(one, "dist", None)
    if getattr(family, "name", "") == "norm":
        return Normals(one.mean(), one.std(), 0, full=False)
    if hasattr(one, "pmf") and hasattr(one, "support"):
        first, last = one.support()
        # One with a fractional loc has other outcomes than whole numbers.
        if np.ndim(first) == 0 and last - first < MOST_OUTCOMES and float(first).is_integer():
            return Outcomes(one.pmf(np.arange(first, last + 1)), int(first))
    return None


def _lined_up(p: Outcomes, q: Outcomes) -> tuple[Outcomes, Outcomes]:
    """SciPy's over all outcomes of either; tensors as they are."""
    if not isinstance(p.probabilities, np.ndarray):
        return p, q
    first = min(p.first, q.first)
    last = max(one.first + len(one.probabilities) for one in (p, q))

    def spread(one: Outcomes) -> Outcomes:
        after = last - one.first - len(one.probabilities)
        return Outcomes(np.pad(one.probabilities, (one.first - first, after)), first)

    return spread(p), spread(q)


def of_normals(p: Normals, q: Normals, kind: str, order: float | None) -> Any:
    """The divergence of two Gaussians; None where no closed form is known.

    Raises:
        ValueError: They are given in two forms.

    Example:
        >>> p, q = Normals(1, 1, 0, full=False), Normals(0, 1, 0, full=False)
        >>> round(float(of_normals(p, q, "kl", None)), 6)
        0.5
    """
    if (p.joined, p.full) != (q.joined, q.full):
        raise ValueError(
            f"p is a Gaussian over {p.joined} axes and q one over {q.joined}, or only one of them "
            "has a covariance: give both in the same form"
        )
    if kind in ("js", "tv") or order == float("inf"):
        return None
    if kind == "kl" or order == 1:
        return _kl(p, q)
    if kind == "alpha" and order == 0:
        return _kl(q, p)
    at = {"chi2": 2.0, "hellinger": 0.5}.get(kind, order)
    return _from_overlap(_log_overlap(p, q, at), kind, at)


def _kl(p: Normals, q: Normals) -> Any:
    if p.full:
        return multivariate_gaussian.kl(mean_p=p.mean, cov_p=p.scale, mean_q=q.mean, cov_q=q.scale)
    each = gaussian.kl(mean_p=p.mean, std_p=p.scale, mean_q=q.mean, std_q=q.scale)
    return _joined(each, p.joined)


def _log_overlap(p: Normals, q: Normals, order: Any) -> Any:
    pair = {"mean_p": p.mean, "std_p": p.scale, "mean_q": q.mean, "std_q": q.scale}
    if p.full:
        mean, std = multivariate_gaussian.principal(
            mean_p=p.mean, cov_p=p.scale, mean_q=q.mean, cov_q=q.scale
        )
        pair = {"mean_p": mean, "std_p": std, "mean_q": 0.0 * mean, "std_q": 0.0 * std + 1.0}
    return _joined(gaussian.log_overlap(order, **pair), p.joined)


def _joined(values: Any, axes: int) -> Any:
    return values.sum(tuple(range(-axes, 0))) if axes else values


def _from_overlap(log_overlap: Any, kind: str, order: Any) -> Any:
    xp = namespace(log_overlap)
    with quiet(xp):
        if kind == "renyi":
            return log_overlap / (order - 1)
        excess = xp.expm1(log_overlap)  # A - 1
        if kind == "chi2":
            return excess
        return xp.sqrt(0.0 - excess) if kind == "hellinger" else excess / (order * (order - 1))
