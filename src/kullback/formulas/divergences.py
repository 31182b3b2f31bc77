"""Divergences of two arrays of probabilities: KL, Jensen-Shannon, chi-square and their kin.

p comes first. With p = q every one of them is 0, and none is ever negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.formulas.categorical import exact, lined_up
from kullback.formulas.k_family import k3

# How far a sum may be off 1, by precision: a float32 softmax over 150,000 ids was seen 1.2e-5 off.
_SUM_TOLERANCE = {"float16": 1e-2, "float32": 1e-4}


def divergence(p: ArrayLike, q: ArrayLike, kind: str = "kl", order: float | None = None) -> Any:
    """The divergence of each row of p from the same row of q.

    D(p||q), with A(a) = sum p^a q^(1 - a):

        kl         sum p log(p/q)
        js         kl(p, m) / 2 + kl(q, m) / 2,  m = (p + q) / 2
        chi2       sum (p - q)^2 / q
        tv         sum |p - q| / 2
        hellinger  sqrt(sum (sqrt p - sqrt q)^2 / 2)
        alpha      (A(order) - 1) / (order (order - 1)),  kl at order 1, kl(q, p) at order 0
        renyi      log A(order) / (order - 1),  kl at order 1, log max p/q at order inf

    All exact, in nats where there is a logarithm, and computed from terms that are never
    negative, so that rows which sum to 1 only nearly are off in second order only.

    Args:
        p: [..., categories] probabilities.
        q: [..., categories] probabilities, or one row to compare every row of p with.
        kind: one of the names above.
        order: the order a of "alpha" (any finite number) and "renyi" (0 or more), no other kind.

    Returns:
        [...] float64; +inf where one side rules out what the other does and the kind minds.

    Raises:
        ValueError: for a negative or missing probability, a row whose sum is off 1 by more than
            1e-6 (float32: 1e-4, float16: 0.01), rows over different categories, an unknown kind,
            or an order out of place.

    Example:
        >>> round(float(divergence([0.5, 0.5], [0.9, 0.1])), 6)
        0.510826
        >>> round(float(divergence([0.5, 0.5], [0.9, 0.1], "renyi", order=2)), 6)
        1.021651
    """
    left, right = probabilities("p", p), probabilities("q", q)
    lined_up(left, right)
    if kind in _KINDS and order is None:
        return _KINDS[kind](left, right)
    if kind == "alpha" and order is not None and np.isfinite(order):
        return _alpha(left, right, order)
    if kind == "renyi" and order is not None and order >= 0:
        return _renyi(left, right, order)
    raise ValueError(
        f"kind={kind!r} with order={order}: expected one of {', '.join(_KINDS)} without an order, "
        "alpha with a finite order, or renyi with an order of 0 or more"
    )


def probabilities(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """The values as float64, each row of them a distribution.

    Raises:
        ValueError: for the first row that is none, and why.

    Example:
        >>> probabilities("p", [[0.5, 0.5], [0.5, 0.6]])
        Traceback (most recent call last):
        ValueError: p, row 1 has the sum 1.1, expected probabilities >= 0 that sum to 1 ...
    """
    tolerance = _SUM_TOLERANCE.get(np.asarray(values).dtype.name, 1e-6)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        raise ValueError(f"{name} is one number, expected probabilities along the last axis")
    missing = ~np.all(array >= 0, axis=-1)
    total = np.sum(array, axis=-1)
    wrong = missing | ~(np.abs(total - 1) <= tolerance)
    if np.any(wrong):
        row = tuple(np.argwhere(wrong)[0].tolist())
        place = f", row {row[0] if len(row) == 1 else row}" if row else ""
        found = "a negative or missing number" if missing[row] else f"the sum {total[row]:.9g}"
        raise ValueError(
            f"{name}{place} has {found}, expected probabilities >= 0 that sum to 1 within "
            f"{tolerance:g}; normalize it, or pass logits to exact()"
        )
    return array


@np.errstate(divide="ignore")
def _kl(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    return exact(log_probs_p=np.log(p), log_probs_q=np.log(q))


def _js(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    middle = (p + q) / 2
    return (_kl(p, middle) + _kl(q, middle)) / 2


def _chi2(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    shared = (p - q) ** 2 / np.where(q > 0, q, 1.0)
    return np.sum(np.where(q > 0, shared, np.where(p > 0, np.inf, 0.0)), axis=-1)


def _tv(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sum(np.abs(p - q), axis=-1) / 2


def _hellinger(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sqrt(np.sum((np.sqrt(p) - np.sqrt(q)) ** 2, axis=-1) / 2)


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def _alpha(p: NDArray[np.float64], q: NDArray[np.float64], order: float) -> NDArray[np.float64]:
    if order == 1:
        return _kl(p, q)
    if order == 0:
        return _kl(q, p)
    both = (p > 0) & (q > 0)
    log_p_over_q = np.where(both, np.log(p) - np.log(q), 0.0)
    # A - 1 = sum of q (t^a - 1 - a (t - 1)), t = p/q, and t^a - 1 - a (t - 1) = k3(a log t) -
    # a k3(log t): the first-order terms, which cancel, are gone. Where one side is 0, its limit.
    shared = q * (k3(order * log_p_over_q) - order * k3(log_p_over_q)) / (order * (order - 1))
    p_alone = p / (1 - order) if order < 1 else np.inf
    q_alone = q / order if order > 0 else np.inf
    alone = np.where(p > 0, p_alone, np.where(q > 0, q_alone, 0.0))
    return np.sum(np.where(both, shared, alone), axis=-1)


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def _renyi(p: NDArray[np.float64], q: NDArray[np.float64], order: float) -> NDArray[np.float64]:
    if order == 1:
        return _kl(p, q)
    if order == np.inf:
        return np.log(np.max(np.where(p > 0, p / q, 0.0), axis=-1))
    if order == 0:
        return 0.0 - np.log(np.sum(np.where(p > 0, q, 0.0), axis=-1))
    excess = order * (order - 1) * _alpha(p, q, order)  # A - 1, accurate near 0
    overlap = np.sum(np.where(p > 0, p**order * q ** (1 - order), 0.0), axis=-1)  # A, near 0
    log_overlap = np.where(np.abs(excess) < 0.5, np.log1p(excess), np.log(overlap))
    return log_overlap / (order - 1)


_KINDS: dict[str, Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]] = {
    "kl": _kl,
    "js": _js,
    "chi2": _chi2,
    "tv": _tv,
    "hellinger": _hellinger,
}
