"""The f-family as tangent gaps, and how far the Fisher quadratic stands for each of them.

Everything is a sum over outcomes of p: of a vocabulary, or of the nodes of Gauss-Hermite
quadrature, which stand for a normal p.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]
Pair = tuple[Values, Values]  # probabilities of p, and log q/p
Gap = Callable[[Values], Values]  # of log q/p, one number per sample

NODES = 200
OFF = 0.1  # from where the second order is no longer called good
# The first two outcomes are 4 and 16 times likelier under q: both beyond e, where k2 is concave.
MERGE = np.array([0.02, 0.02, 0.96]), np.array([0.08, 0.32, 0.60])


def alpha(order: float) -> Gap:
    """The gap of the alpha-divergence, with f''(1) = 1: KL(p‖q) at 1, KL(q‖p) at 0."""
    if order == 1:
        return kb.k3
    if order == 0:
        return kb.other_direction
    scale = order * (order - 1)

    def f(r: Values) -> Values:
        return (r ** (1 - order) - 1) / scale

    return lambda log_r: kb.f_form(log_r, f, slope_at_one=-1 / order)


def _js(r: Values) -> Values:
    """Four times the Jensen-Shannon f, whose f''(1) is 1/4."""
    return 2 * (r * np.log(r) - (1 + r) * np.log((1 + r) / 2))


def js(log_r: Values) -> Values:
    """The gap of the Jensen-Shannon divergence, times 4."""
    return kb.f_form(log_r, _js, slope_at_one=0.0)


# Each by its gap, divided by f''(1).
GAPS: dict[str, Gap] = {
    "KL(p‖q)": kb.k3,
    "KL(q‖p)": kb.other_direction,
    "mean of k2": kb.k2,
    "χ²(q‖p) / 2": alpha(-1.0),
    "χ²(p‖q) / 2": alpha(2.0),
    "4 H²": alpha(0.5),
    "4 JSD": js,
}


def derivatives(gap: Gap) -> tuple[float, float]:
    """The second and the third derivative of a gap by r, at r = 1, by central differences."""
    h = 1e-3
    away = {step: float(gap(np.log(np.array([1 + step * h])))[0]) for step in (-2, -1, 1, 2)}
    near, far = away[1] + away[-1], away[2] + away[-2]
    second = (16 * near - far) / (12 * h**2)
    third = (away[2] - 2 * away[1] + 2 * away[-1] - away[-2]) / (2 * h**3)
    return second, third


def mean(gap: Gap, pair: Pair) -> float:
    """A divergence: the mean of its gap for x ~ p."""
    p, log_r = pair
    return float(p @ gap(log_r))


@cache
def _nodes() -> Pair:
    z, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return weights / np.sum(weights), z


def shifted(shift: float) -> Pair:
    """Of p = N(0, 1) and q = N(shift, 1)."""
    p, z = _nodes()
    return p, shift * z - shift**2 / 2


def tilted(p: Values, scores: Values, t: float) -> Pair:
    """A softmax policy p, and q with t times the scores added to its logits."""
    moved = t * scores
    top = float(np.max(moved))
    return p, moved - top - np.log(p @ np.exp(moved - top))


def raised(share: float, t: float) -> Pair:
    """A vocabulary in which one token has a share, and its logit is raised by t."""
    return tilted(np.array([share, 1 - share]), np.array([1.0, 0.0]), t)


def fisher(share: float | None, t: float) -> float:
    """The quadratic t² F / 2 of a raised token, or of a shift of normals (None)."""
    return t**2 / 2 * (1.0 if share is None else share * (1 - share))


def pair_of(share: float | None, t: float) -> Pair:
    """The pair that the quadratic is about."""
    return shifted(t) if share is None else raised(share, t)


def ratio(gap: Gap, share: float | None, t: float) -> float:
    """A divergence over the Fisher quadratic."""
    return mean(gap, pair_of(share, t)) / fisher(share, t)


def bias_of_k2(share: float | None, t: float) -> float:
    """The mean of k2 over KL(p‖q), less 1."""
    pair = pair_of(share, t)
    return mean(kb.k2, pair) / mean(kb.k3, pair) - 1


def good_until(off: Callable[[float], float], share: float | None, sign: int = 1) -> float | None:
    """The KL(p‖q) at which something is first 10 % off; None: never, up to t = 4.

    Args:
        off: How far it is off at a shift t, as a share.
        share: Of the token whose logit is shifted, or None for normals.
        sign: −1 lowers the logit.
    """
    from scipy.optimize import brentq

    def beyond(t: float) -> float:
        return abs(off(sign * t)) - OFF

    grid = np.linspace(0.02, 4.0, 200)
    for low, high in pairwise(grid):
        if beyond(float(high)) > 0:
            t: Any = brentq(beyond, float(low), float(high), xtol=1e-13)
            return mean(kb.k3, pair_of(share, sign * float(t)))
    return None


def merged() -> tuple[dict[str, float], dict[str, float]]:
    """Every divergence of three outcomes, and of the same with the first two told apart no more."""
    p, q = MERGE
    fine = p, np.log(q / p)
    p, q = (np.array([x[0] + x[1], x[2]]) for x in MERGE)
    coarse = p, np.log(q / p)
    before = {name: mean(gap, fine) for name, gap in GAPS.items()}
    return before, {name: mean(gap, coarse) for name, gap in GAPS.items()}
