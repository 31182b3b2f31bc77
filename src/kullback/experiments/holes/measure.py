"""Three categories: a hole and a smooth shift of the same KL, exactly, at every depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Q = np.array([0.2, 0.4, 0.4])  # of the sweep over depth
RECOVERED_Q = np.array([0.1, 0.45, 0.45])  # of the first example
RECOVERED_HOLE = 0.001  # what p1 leaves of the first category there
PRINTED_KL = 0.0996504851
DEPTHS = tuple(round(0.05 * i, 2) for i in range(1, 71))  # the document's range, to 3.5
CLAMP = 10.0  # where several trainers cut k3 off
DRAWS = 500_000

Values = NDArray[np.float64]


def hole(first: float) -> Values:
    """What is left of the first category, the rest split evenly."""
    return np.array([first, (1 - first) / 2, (1 - first) / 2])


def smooth(kl: float, q: Values) -> Values:
    """The shift between the last two categories that has this KL from q."""
    from scipy.optimize import brentq

    def shifted(delta: float) -> Values:
        return q + np.array([0.0, delta, -delta])

    def off(delta: float) -> float:
        return float(kb.divergence(shifted(delta), q)) - kl

    return shifted(float(brentq(off, 0.0, q[2] - 1e-12, xtol=1e-15)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Matched:
    """Two distributions of the same KL from q, with the exact shape of each."""

    q: Values
    hole: Values
    smooth: Values

    @property
    def of_hole(self) -> kb.Shape:
        """KL, variances, S and λ* of the one with the hole."""
        return kb.shape(self.hole, self.q)

    @property
    def of_smooth(self) -> kb.Shape:
        """The same of the smooth one."""
        return kb.shape(self.smooth, self.q)


def matched(first: float, q: Values) -> Matched:
    """The hole that leaves so much, and the smooth shift of its KL."""
    p1 = hole(first)
    return Matched(q, p1, smooth(float(kb.divergence(p1, q)), q))


def at_depth(depth: float) -> Matched:
    """Of the sweep: the first category ten times less likely at each depth more."""
    return matched(Q[0] * 10.0**-depth, Q)


def same_kl() -> list[tuple[float, float]]:
    """Which q = (b, …) and p1 = (a, …) have the printed KL to all its digits.

    Asked are b of two decimals and a of one significant digit down to 1e-6.
    """
    b = np.arange(1, 100)[:, None] / 100
    a = (np.arange(1, 10) * 10.0 ** np.arange(-6, 0)[:, None]).ravel()
    kl = a * np.log(a / b) + (1 - a) * np.log((1 - a) / (1 - b))
    hits = np.argwhere(np.abs(kl - PRINTED_KL) < 0.5e-10)
    return [(float(b[i, 0]), float(a[j])) for i, j in hits]


def crossover() -> float:
    """The depth from which k1 is the less noisy at the hole."""
    from scipy.optimize import brentq

    def ahead(depth: float) -> float:
        first = Q[0] * 10.0**-depth
        return float(kb.shape(hole(first), Q).S) - 1

    return float(brentq(ahead, 0.1, 2.0, xtol=1e-13))  # type: ignore[arg-type]


def clamp_begins() -> float:
    """The depth from which the clamp cuts k3 of the hole."""
    from scipy.optimize import brentq

    def over(depth: float) -> float:
        p = hole(Q[0] * 10.0**-depth)
        return float(kb.k3(np.log(Q / p))[0]) - CLAMP

    return float(brentq(over, 0.5, 2.0, xtol=1e-13))  # type: ignore[arg-type]


def moments(p: Values, values: Values) -> tuple[float, float]:
    """Mean and variance of one sample's value, for x ~ p."""
    mean = float(p @ values)
    return mean, float(p @ (values - mean) ** 2)


def clamped(p: Values, q: Values) -> tuple[float, float]:
    """Mean and variance of k3 cut off at the clamp."""
    return moments(p, np.minimum(kb.k3(np.log(q / p)), CLAMP))


def z_of_draws(p: Values, q: Values, seed: int) -> dict[str, tuple[float, float, float]]:
    """Exact mean, mean of draws, and their distance in exact standard errors, of k1 and k3."""
    drawn = np.random.default_rng(seed).choice(len(p), size=DRAWS, p=p)
    found = {}
    for name, formula in (("k1", kb.k1), ("k3", kb.k3)):
        values = formula(np.log(q / p))
        exact, variance = moments(p, values)
        mean = float(np.mean(values[drawn]))
        found[name] = (exact, mean, (mean - exact) / float(np.sqrt(variance / DRAWS)))
    return found
