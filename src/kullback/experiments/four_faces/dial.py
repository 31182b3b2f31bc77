"""The continuous version: one normal fitted to a target of two modes, along the alpha dial."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]

WEIGHTS, MODES, SD = (0.6, 0.4), (-2.0, 2.0), 0.7  # of the target
X = np.linspace(-12.0, 12.0, 601)  # the grid over which divergences are summed
STEP = float(X[1] - X[0])
ORDERS = tuple(round(0.02 * i, 2) for i in range(51))  # 0 is KL(q‖p), 1 is KL(p‖q)
NARROW, BROAD = (-2.0, SD), (-0.4, 2.0)  # where the two branches are looked for


@dataclass(frozen=True, slots=True)
class Fit:
    """A normal, and its divergence from the target."""

    mean: float
    sd: float
    divergence: float


def masses(mean: float, sd: float) -> Values:
    """A normal on the grid."""
    height = np.exp(-0.5 * ((X - mean) / sd) ** 2)
    return height / np.sum(height)


@cache
def target() -> Values:
    """The two modes on the grid."""
    both = zip(WEIGHTS, MODES, strict=True)
    return np.sum([weight * masses(mode, SD) for weight, mode in both], axis=0)


def fitted(order: float, start: tuple[float, float]) -> Fit:
    """The nearest local optimum from a start: a mean and a standard deviation."""
    from scipy.optimize import minimize

    def off(at: Values) -> float:
        return float(kb.divergence(target(), masses(at[0], np.exp(at[1])), "alpha", order=order))

    how = {"xatol": 1e-7, "fatol": 1e-12}
    found = minimize(off, (start[0], np.log(start[1])), method="Nelder-Mead", options=how)
    return Fit(float(found.x[0]), float(np.exp(found.x[1])), float(found.fun))


def _along(orders: tuple[float, ...], start: tuple[float, float]) -> dict[float, Fit]:
    """A branch of optima, each looked for where the one before was."""
    branch: dict[float, Fit] = {}
    for order in orders:
        branch[order] = fitted(order, start)
        start = branch[order].mean, branch[order].sd
    return branch


@cache
def branches() -> tuple[dict[float, Fit], dict[float, Fit]]:
    """The fit on the taller mode, followed up from 0, and the one over both, down from 1."""
    return _along(ORDERS, NARROW), _along(ORDERS[::-1], BROAD)


def best(order: float) -> Fit:
    """The better one of the two branches."""
    return min((branch[order] for branch in branches()), key=lambda fit: fit.divergence)


@cache
def jump() -> float:
    """The order at which both branches are equally good, so that the best fit leaps."""
    from scipy.optimize import brentq

    def ahead(order: float) -> float:
        return fitted(order, NARROW).divergence - fitted(order, BROAD).divergence

    return float(brentq(ahead, 0.1, 0.35, xtol=1e-6))  # type: ignore[arg-type]
