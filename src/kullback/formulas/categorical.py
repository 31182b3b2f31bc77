"""Whole categorical distributions from logits or log-probabilities: log-softmax, entropy, KL."""

from __future__ import annotations

from typing import Any

from kullback.arrays import at_least_float32, cast, held, namespace, only_where, quiet, sum_dtype
from kullback.formulas.weights import weighted_k3

_ROUNDED = 1e-2  # how far bfloat16 can move the sum of a row's probabilities


def log_softmax(logits: Any) -> Any:
    """Logits to log-probabilities along the last axis.

    log p = z - log sum exp z

    Args:
        logits: [..., categories]; -inf marks a category that cannot occur.

    Returns:
        Log-probabilities of the same shape, nats, <= 0; a row without any finite logit is NaN.

    Example:
        >>> [round(float(x), 6) for x in log_softmax([1000.0, 1000.0, float("-inf")])]
        [-0.693147, -0.693147, -inf]
    """
    xp = namespace(logits)
    with quiet(xp):
        z = at_least_float32(logits, xp)
        shifted = z - held(xp.amax(z, axis=-1, keepdims=True), xp)
        # The sum stays in float64 up to the last rounding: a float32 sum over a whole vocabulary
        # shifts all its log-probabilities together, a false floor under any k1.
        total = xp.sum(xp.exp(shifted), axis=-1, keepdims=True, dtype=sum_dtype(z, xp))
        return cast(shifted - xp.log(total), z.dtype, xp)


def entropy(*, logits: Any = None, log_probs: Any = None) -> Any:
    """The entropy of each row.

    H(p) = -sum p log p

    Exact, not an estimate; 0 <= H <= log(categories). Source: Shannon 1948.

    Args:
        logits: [..., categories]; or
        log_probs: [..., categories], nats, already normalized.

    Returns:
        [...] nats, in float64 where the device has it.

    Raises:
        TypeError: unless exactly one of the two is given.
        ValueError: when the probabilities of a row of log_probs do not sum to 1 within 0.01.

    Example:
        >>> round(float(entropy(logits=[0.0, 0.0])), 6)
        0.693147
    """
    xp = namespace(logits if log_probs is None else log_probs)
    log_p = _log_probs("", logits, log_probs, xp)
    possible = xp.where(log_p == -xp.inf, 0.0, log_p)
    return xp.sum(0.0 - xp.exp(log_p) * possible, axis=-1, dtype=sum_dtype(log_p, xp))


def exact(
    *,
    logits_p: Any = None,
    logits_q: Any = None,
    log_probs_p: Any = None,
    log_probs_q: Any = None,
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
        [...] nats, in float64 where the device has it; +inf where q rules out a category that p
        does not.

    Raises:
        TypeError: unless exactly one form of each side is given.
        ValueError: when the two sides differ in categories or cannot be lined up, or when the
            probabilities of a row of log-probabilities do not sum to 1 within 0.01.

    Example:
        >>> from math import log
        >>> round(float(exact(logits_p=[0.0, 0.0], log_probs_q=[log(0.9), log(0.1)])), 6)
        0.510826
    """
    given = (logits_p, logits_q, log_probs_p, log_probs_q)
    xp = namespace(*(one for one in given if one is not None))
    log_p = _log_probs("_p", logits_p, log_probs_p, xp)
    log_q = _log_probs("_q", logits_q, log_probs_q, xp)
    lined_up(log_p, log_q)
    terms = weighted_k3(log_p=log_p, log_q=log_q, log_sampler=0.0)
    return xp.sum(terms, axis=-1, dtype=sum_dtype(terms, xp))


def lined_up(p: Any, q: Any) -> None:
    """Raise ValueError unless p and q are rows over the same categories.

    Example:
        >>> import numpy as np
        >>> lined_up(np.ones((4, 3)), np.ones(3))
    """
    if p.ndim and q.ndim and p.shape[-1] == q.shape[-1]:
        shorter = min(p.ndim, q.ndim)
        if p.shape[-shorter:] == q.shape[-shorter:]:
            return
    raise ValueError(
        f"p and q have the shapes {tuple(p.shape)} and {tuple(q.shape)}, expected rows over the "
        "same categories; pass arrays of one shape, or one row to compare with every other"
    )


def _log_probs(side: str, logits: Any, log_probs: Any, xp: Any) -> Any:
    if logits is not None and log_probs is None:
        return log_softmax(logits)
    if log_probs is not None and logits is None:
        return normalized(f"log_probs{side}", at_least_float32(log_probs, xp), xp)
    raise TypeError(
        f"expected either logits{side} or log_probs{side}, got "
        f"{'neither' if logits is None else 'both'}; pass exactly one of the two"
    )


def normalized(name: str, log_probs: Any, xp: Any) -> Any:
    """Rows of log-probabilities as they are; refused is what is none: logits, a cut head.

    Raises:
        ValueError: when the probabilities of a row do not sum to 1 within 0.01 (NumPy; NaN with
            torch and JAX).

    Example:
        >>> import numpy as np
        >>> normalized("log_probs_p", np.log([0.5, 0.6]), np)
        Traceback (most recent call last):
        ValueError: log_probs_p, row 0 has probabilities that sum to 1.1, expected 1; ...
    """
    with quiet(xp):
        total = xp.sum(xp.exp(log_probs), axis=-1, keepdims=True, dtype=sum_dtype(log_probs, xp))

    def complaint(ok: Any) -> ValueError:
        row = int(ok.ravel().argmin())
        return ValueError(
            f"{name}, row {row} has probabilities that sum to {total.ravel()[row]:.6g}, expected "
            "1; give logits instead, or the whole row"
        )

    return only_where(xp.abs(total - 1) <= _ROUNDED, log_probs, xp, complaint)
