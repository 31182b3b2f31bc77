"""What a batch does to the controller on average, exactly: a sum over all its counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import kullback as kb
from kullback.experiments.controller.loop import CLIP, LAMBDAS, TARGET, Q, World

Values = NDArray[np.float64]


def estimates(world: World, feed: str, samples: int, theta: float) -> tuple[Values, Values]:
    """Every estimate that a batch can give, and its probability.

    Args:
        world: Where.
        feed: ``"k1"`` or ``"k3"``.
        samples: Of the batch.
        theta: Of the policy.
    """
    from scipy.special import gammaln

    first, second = np.meshgrid(np.arange(samples + 1), np.arange(samples + 1), indexing="ij")
    there = first + second <= samples
    counts = np.stack([first[there], second[there], samples - (first + second)[there]], axis=-1)
    log_p = world.log_p(theta)
    log_chance = gammaln(samples + 1) + np.sum(counts * log_p - gammaln(counts + 1), axis=-1)
    values = kb.k_lambda(np.log(Q) - log_p, LAMBDAS[feed])
    return counts @ values / samples, np.exp(log_chance)


def push(world: World, feed: str, samples: int, theta: float) -> float:
    """The mean of the clipped error; the coefficient falls where it is below 0."""
    values, chance = estimates(world, feed, samples, theta)
    return float(chance @ np.clip(values / TARGET - 1, -CLIP, CLIP))


def rests(world: World, feed: str, samples: int) -> list[float]:
    """The KLs over the target at which a slow controller stays: the push turns from − to + there.

    Looked for between a tenth of the target and the most that the world allows.
    """
    from scipy.optimize import brentq

    most = float(-np.log(Q.max()))
    grid = np.linspace(0.1 * TARGET, most - 0.05, 60)
    pushed = [push(world, feed, samples, world.theta(float(kl))) for kl in grid]

    def at(kl: float) -> float:
        return push(world, feed, samples, world.theta(kl))

    return [
        float(brentq(at, low, high, xtol=1e-10)) / TARGET  # type: ignore[arg-type]
        for low, high, before, after in zip(grid, grid[1:], pushed, pushed[1:], strict=False)
        if before < 0 <= after
    ]


def shares(world: World, feed: str, samples: int) -> tuple[float, float, float]:
    """Of batches at the target: below 0, cut off below, cut off above."""
    values, chance = estimates(world, feed, samples, world.at_target)
    error = values / TARGET - 1
    return tuple(float(chance[test].sum()) for test in (values < 0, error < -CLIP, error > CLIP))  # type: ignore[return-value]
