"""The divergences of distillation as they are written down, and their slopes, of probabilities.

The keys are the words of the claims. Complex numbers go through, so that a derivative is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

_OF_MANY_DIGITS = np.frompyfunc(mpmath.log, 1, 1)

Formula = Callable[..., Any]  # of T, S and the weight or order


def log(x: Any) -> Any:
    return _OF_MANY_DIGITS(x) if x.dtype == object else np.log(x)


def kl(p: Any, q: Any) -> Any:
    return np.sum(p * log(p / q), axis=-1)


def mixed(t: Any, s: Any, w: float) -> Any:
    return w * t + (1 - w) * s


VALUES: dict[str, Formula] = {
    "sum T log(T/S)": lambda t, s, w: kl(t, s),
    "sum S log(S/T)": lambda t, s, w: kl(s, t),
    "KL(T||M), M = w T + (1 - w) S": lambda t, s, w: kl(t, mixed(t, s, w)),
    "KL(S||M), M = w S + (1 - w) T": lambda t, s, w: kl(s, mixed(s, t, w)),
    "(1 - w) KL(T||M) + w KL(S||M), M = w T + (1 - w) S": lambda t, s, w: (
        (1 - w) * kl(t, mixed(t, s, w)) + w * kl(s, mixed(t, s, w))
    ),
    "w KL(T||M) + (1 - w) KL(S||M), M = w T + (1 - w) S": lambda t, s, w: (
        w * kl(t, mixed(t, s, w)) + (1 - w) * kl(s, mixed(t, s, w))
    ),
    "(1 - sum T^a S^(1 - a)) / (a (1 - a))": lambda t, s, a: (
        (1 - np.sum(t**a * s ** (1 - a), axis=-1)) / (a * (1 - a))
    ),
}

SLOPES: dict[str, Formula] = {
    "-T/S": lambda t, s, w: -t / s,
    "log(S/T)": lambda t, s, w: np.log(s / t),
    "-(1 - w) T/M": lambda t, s, w: -(1 - w) * t / mixed(t, s, w),
    "log(S/M) - w S/M": lambda t, s, w: np.log(s / mixed(s, t, w)) - w * s / mixed(s, t, w),
    "w log(S/M) - (1 - w) ((1 - w) T + w S)/M": lambda t, s, w: (
        w * np.log(s / mixed(t, s, w)) - (1 - w) * mixed(s, t, w) / mixed(t, s, w)
    ),
    "(1 - w) log(S/M)": lambda t, s, w: (1 - w) * np.log(s / mixed(t, s, w)),
    "-(T/S)^a / a": lambda t, s, a: -((t / s) ** a) / a,
}

ENDS: dict[str, Formula] = {
    "KL(T||S)": lambda t, s: kl(t, s),
    "KL(S||T)": lambda t, s: kl(s, t),
    "0": lambda t, s: 0.0 * kl(t, s),
}


def softmax(logits: Any) -> Any:
    raised = np.exp(logits - np.max(logits.real, axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def in_logits(slope: Any, s: Any) -> Any:
    """The gradient in the student's logits, of the slope in its probabilities."""
    return s * (slope - np.sum(s * slope, axis=-1, keepdims=True))


def gradient(function: Callable[[Any], Any], logits: Any) -> Any:
    """The gradient of a function of complex rows of logits, exact to the last digits."""
    found = np.zeros_like(logits)
    for place in np.ndindex(logits.shape):
        moved = logits.astype(complex)
        moved[place] += 1e-30j
        found[place] = np.sum(function(moved)).imag / 1e-30
    return found


# Teachers and students: far, alike, a hole on either side, peaked, equal.
T = np.array([(0.7, 0.2, 0.1), (0.4, 0.35, 0.25), (0.5, 0.4999, 0.0001),
              (0.3, 0.3, 0.4), (0.99, 0.006, 0.004), (0.2, 0.3, 0.5)])  # fmt: skip
S = np.array([(0.2, 0.3, 0.5), (0.45, 0.33, 0.22), (0.3, 0.3, 0.4),
              (0.5, 0.4999, 0.0001), (0.004, 0.99, 0.006), (0.2, 0.3, 0.5)])  # fmt: skip
SHARES = (0.01, 0.3, 0.5, 0.51, 0.99)
