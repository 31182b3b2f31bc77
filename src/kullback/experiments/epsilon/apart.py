"""Two bumps of bounded support that move apart, on a grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]

STEP = 0.05
X: Values = np.arange(-24.0, 105.0) / 20  # exactly at multiples of the step
WIDTH = 2.0  # of the support of a bump, so that it is disjoint from one that far away
SHIFTS = tuple(round(0.1 * i, 1) for i in range(41))
FAR = SHIFTS[-1]


def bump(shift: float) -> Values:
    """A bump around the shift: squared cosine, and exactly 0 outside."""
    away = np.abs(X - shift)
    height = np.where(away < WIDTH / 2 - STEP / 2, np.cos(np.pi * away / WIDTH) ** 2, 0.0)
    return height / np.sum(height)


def wasserstein(p: Values, q: Values, places: Values = X) -> float:
    """The mean distance that mass has to be carried."""
    from scipy.stats import wasserstein_distance

    return float(wasserstein_distance(places, places, p, q))


def distances(shift: float) -> dict[str, float]:
    """How far the bump at a shift is from the one at 0, by name."""
    p, q = bump(0.0), bump(shift)
    return {
        "JSD / log 2": float(kb.divergence(p, q, "js")) / float(np.log(2)),
        "total variation": float(kb.divergence(p, q, "tv")),
        "Hellinger": float(kb.divergence(p, q, "hellinger")),
        "Wasserstein / 4": wasserstein(p, q) / FAR,
    }


def smoothed(shift: float, epsilon: float) -> float:
    """KL with ε added to both and renormalized."""
    p, q = (bump(at) + epsilon for at in (0.0, shift))
    return float(kb.divergence(p / np.sum(p), q / np.sum(q)))


def renumbered(shift: float, seed: int) -> float:
    """Wasserstein with the places dealt out anew, as if they were the numbers of tokens."""
    places = np.random.default_rng(seed).permutation(X)
    return wasserstein(bump(0.0), bump(shift), places)
