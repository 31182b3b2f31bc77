"""Whole categorical distributions from logits or log-probabilities: log-softmax, entropy, KL."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.formulas.precision import at_least_float32
from kullback.formulas.weights import weighted_k3

_ROUNDED = 1e-2  # how far bfloat16 can move the sum of a row's probabilities


@np.errstate(invalid="ignore", divide="ignore")
def log_softmax(logits: ArrayLike) -> NDArray[Any]:
    """Logits to log-probabilities along the last axis.

    log p = z - log sum exp z

    Args:
        logits: [..., categories]; -inf marks a category that cannot occur.

    Returns:
        Log-probabilities of the same shape, nats, <= 0; a row without any finite logit is NaN.

    Example:
        >>> [round(float(x), 6) for x in log_softmax([1000.0, 1000.0, -np.inf])]
        [-0.693147, -0.693147, -inf]
    """
    z = at_least_float32(logits)
    shifted = z - np.max(z, axis=-1, keepdims=True)
    # The sum stays in float64 up to the last rounding: a float32 sum over a whole vocabulary
    # shifts all its log-probabilities together, a false floor under any k1.
    total = np.sum(np.exp(shifted), axis=-1, keepdims=True, dtype=np.float64)
    return (shifted - np.log(total)).astype(z.dtype)


def entropy(*, logits: ArrayLike | None = None, log_probs: ArrayLike | None = None) -> Any:
    """The entropy of each row.

    H(p) = -sum p log p

    Exact, not an estimate; 0 <= H <= log(categories). Source: Shannon 1948.

    Args:
        logits: [..., categories]; or
        log_probs: [..., categories], nats, already normalized.

    Returns:
        [...] float64, nats.

    Raises:
        TypeError: unless exactly one of the two is given.
        ValueError: when the probabilities of a row of log_probs do not sum to 1 within 0.01.

    Example:
        >>> round(float(entropy(logits=[0.0, 0.0])), 6)
        0.693147
    """
    log_p = _log_probs("", logits, log_probs)
    possible = np.where(log_p == -np.inf, 0.0, log_p)
    return np.sum(0.0 - np.exp(log_p) * possible, axis=-1, dtype=np.float64)


def exact(
    *,
    logits_p: ArrayLike | None = None,
    logits_q: ArrayLike | None = None,
    log_probs_p: ArrayLike | None = None,
    log_probs_q: ArrayLike | None = None,
) -> Any:
    """The KL divergence of each row, summed over all categories.

    KL(p||q) = sum p (q/p - 1 - log(q/p))

    Exact, never negative. Each term is k3 rather than -p log(q/p): the sum is the same, but no
    term cancels another, and an error delta in a row's normalization (float32 log-probabilities
    have 1e-6 of it) enters as delta^2 / 2 rather than as delta. Differentiated in p or in q it
    has the gradient of KL(p||q). Source: Kullback and Leibler 1951.

    Args:
        logits_p: [..., categories] of the distribution that comes first; or
        log_probs_p: the same as normalized log-probabilities, nats.
        logits_q: [..., categories] of the other distribution; or
        log_probs_q: the same as normalized log-probabilities, nats.

    Returns:
        [...] float64, nats; +inf where q rules out a category that p does not.

    Raises:
        TypeError: unless exactly one form of each side is given.
        ValueError: when the two sides differ in categories or cannot be lined up, or when the
            probabilities of a row of log-probabilities do not sum to 1 within 0.01.

    Example:
        >>> round(float(exact(logits_p=[0.0, 0.0], log_probs_q=np.log([0.9, 0.1]))), 6)
        0.510826
    """
    log_p = _log_probs("_p", logits_p, log_probs_p)
    log_q = _log_probs("_q", logits_q, log_probs_q)
    lined_up(log_p, log_q)
    terms = weighted_k3(log_p=log_p, log_q=log_q, log_sampler=0.0)
    return np.sum(terms, axis=-1, dtype=np.float64)


def lined_up(p: NDArray[Any], q: NDArray[Any]) -> None:
    """Raise ValueError unless p and q are rows over the same categories.

    Example:
        >>> lined_up(np.ones((4, 3)), np.ones(3))
    """
    if p.ndim and q.ndim and p.shape[-1] == q.shape[-1]:
        shorter = min(p.ndim, q.ndim)
        if p.shape[-shorter:] == q.shape[-shorter:]:
            return
    raise ValueError(
        f"p and q have the shapes {p.shape} and {q.shape}, expected rows over the same categories; "
        "pass arrays of one shape, or one row to compare with every other"
    )


def _log_probs(side: str, logits: ArrayLike | None, log_probs: ArrayLike | None) -> NDArray[Any]:
    if logits is not None and log_probs is None:
        return log_softmax(logits)
    if log_probs is not None and logits is None:
        return _normalized(f"log_probs{side}", at_least_float32(log_probs))
    raise TypeError(
        f"expected either logits{side} or log_probs{side}, got "
        f"{'neither' if logits is None else 'both'}; pass exactly one of the two"
    )


@np.errstate(over="ignore")
def _normalized(name: str, log_probs: NDArray[Any]) -> NDArray[Any]:
    """Refuse what is no row of log-probabilities: probabilities, logits, a cut head."""
    total = np.sum(np.exp(log_probs), axis=-1, dtype=np.float64)
    off = np.atleast_1d(~(np.abs(total - 1) <= _ROUNDED))
    if np.any(off):
        row = int(np.argmax(off.ravel()))
        raise ValueError(
            f"{name}, row {row} has probabilities that sum to "
            f"{np.atleast_1d(total).ravel()[row]:.6g}, expected 1; give logits instead, or the "
            "whole row"
        )
    return log_probs
