"""Three candidates, two of which rule out what p does, and the repairs that make their KL finite.

All of it is a sum over five outcomes. A repair is a function of q and ε.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]

P = np.array([0.4, 0.3, 0.2, 0.08, 0.02])
CANDIDATES = {
    "A": np.array([0.4, 0.3, 0.2, 0.0, 0.02]) / 0.92,
    "B": np.array([0.1, 0.3, 0.4, 0.2, 0.0]),
    "C": np.array([0.05, 0.15, 0.3, 0.3, 0.2]),
}
RULED_OUT = 3  # the outcome that A rules out
VOCABULARY = 151_936


def _added(q: Values, epsilon: float) -> Values:
    return q + epsilon


def _added_renormalized(q: Values, epsilon: float) -> Values:
    return (q + epsilon) / (np.sum(q) + len(q) * epsilon)


def _clamped(q: Values, epsilon: float) -> Values:
    return np.maximum(q, epsilon)


def _mixed(q: Values, epsilon: float) -> Values:
    return (1 - epsilon) * q + epsilon / len(q)


ADDED = "q + ε"
REPAIRS: dict[str, Callable[[Values, float], Values]] = {
    ADDED: _added,
    "q + ε, renormalized": _added_renormalized,
    "max(q, ε), log q cut at log ε": _clamped,
    "(1 − ε) q + ε · uniform": _mixed,
}


def shown(p: Values, q: Values) -> float:
    """The sum p log(p/q) as it is coded everywhere: no KL where q does not sum to 1."""
    there = p > 0
    return float(np.sum(p[there] * np.log(p[there] / q[there])))


def repaired(name: str, repair: str, epsilon: float) -> float:
    """What a candidate's infinite or finite KL(p‖q) becomes."""
    return shown(P, REPAIRS[repair](CANDIDATES[name], epsilon))


def winner(repair: str, epsilon: float) -> str:
    """The candidate with the least number."""
    return min(CANDIDATES, key=lambda name: repaired(name, repair, epsilon))


def turns(repair: str, first: str, second: str) -> float:
    """The ε at which two candidates change places."""
    from scipy.optimize import brentq

    def ahead(exponent: float) -> float:
        epsilon = 10.0**exponent
        return repaired(first, repair, epsilon) - repaired(second, repair, epsilon)

    return 10.0 ** float(brentq(ahead, -14.0, -2.0, xtol=1e-12))  # type: ignore[arg-type]


def missing(q: Values) -> float:
    """The mass that p has where q has none."""
    return float(np.sum(P[q == 0]))


def skewed(q: Values, share: float) -> float:
    """KL of p from q with a share of p in it: log(1/share) at most."""
    return float(kb.divergence(P, (1 - share) * q + share * P))


def from_itself(epsilon: float, repair: str = ADDED, outcomes: int = VOCABULARY) -> float:
    """The number of a uniform policy against itself, only q of which is repaired."""
    one = np.full(outcomes, 1 / outcomes)
    return shown(one, REPAIRS[repair](one, epsilon))


# What a sample says, x ~ p, of A with ε added and renormalized.


def moments(values: Values) -> tuple[float, float]:
    """Mean and standard deviation of one sample's value."""
    mean = float(P @ values)
    return mean, float(np.sqrt(P @ (values - mean) ** 2))


def log_ratio(epsilon: float, repair: str = "q + ε, renormalized") -> Values:
    """Log q/p of A after a repair."""
    return np.log(REPAIRS[repair](CANDIDATES["A"], epsilon) / P)


def unseen(samples: int) -> tuple[float, float, float]:
    """The chance that no sample is what A rules out, and the mean k1 and k3 of such a batch."""
    rest = np.delete(P, RULED_OUT)
    ratio = np.delete(CANDIDATES["A"], RULED_OUT) / rest
    share = rest / np.sum(rest)
    logs = np.log(ratio)
    return float(np.sum(rest) ** samples), float(share @ kb.k1(logs)), float(share @ kb.k3(logs))


def off_support() -> tuple[float, float, float]:
    """KL(A‖p) and the means of k1 and k3 over samples of A, which never is where p alone is."""
    q = CANDIDATES["A"]
    seen = q > 0
    logs = np.log(P[seen] / q[seen])
    return float(kb.divergence(q, P)), float(q[seen] @ kb.k1(logs)), float(q[seen] @ kb.k3(logs))


# Gradients on the logit of the outcome that is ruled out.


def pull_of_kl(epsilon: float) -> float:
    """Of KL(p‖q) where p is trained and q repaired: p0 (log p0/q0 − KL)."""
    values = kb.k1(log_ratio(epsilon))
    return float(P[RULED_OUT] * (values[RULED_OUT] - P @ values))


def pull_of_k3(epsilon: float) -> float:
    """Of k3 differentiated as a loss on samples of p: the sum of p (1 − r) ∇ log p."""
    score = np.eye(len(P))[RULED_OUT] - P[RULED_OUT]
    return float(P @ ((1 - np.exp(log_ratio(epsilon))) * score))


def student(left: float) -> Values:
    """A with some of the outcome that it rules out."""
    q = (1 - left) * CANDIDATES["A"]
    q[RULED_OUT] = left
    return q


def force(repair: str | None, left: float, epsilon: float = 0.0) -> float:
    """How hard −∇ of Σ p log(p/q) pushes the trained q's logit up: p0 − q0 without a repair.

    Args:
        repair: A key of REPAIRS whose normalization does not depend on q, or None.
        left: What q still gives the outcome.
        epsilon: Of the repair.
    """
    q = student(left)
    passed = np.ones(len(q))  # d log repaired / d log q
    if repair == "max(q, ε), log q cut at log ε":
        passed = (q > epsilon).astype(float)
    elif repair is not None:
        scale = 1 - epsilon if repair == "(1 − ε) q + ε · uniform" else 1.0
        passed = scale * q / REPAIRS[repair](q, epsilon)
    weight = P * passed
    return float(weight[RULED_OUT] - q[RULED_OUT] * np.sum(weight))
