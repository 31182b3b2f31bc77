"""What closed loops do near their target, predicted from the exact error of one sample.

With u = log θ and b = log β, both less their values at the target,

    u' = (1 − a) u − a b            + noise of the gradient
    b' =      g κ u + b             + g · noise of the estimate / target

where a is the policy's response, g the controller's gain and κ = d log KL / d log θ. Without noise
it comes to rest where g κ < 1, whatever a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import kullback as kb
from kullback.experiments.controller.loop import CLIP, RESPONSE, TARGET, Loop, Q, World

Values = NDArray[np.float64]


def slope(world: World) -> float:
    """κ: by how many per cent the KL grows with one per cent of θ, at the target."""
    variance = world.gains(world.log_p(world.at_target))[1]
    return float(world.at_target**2 * variance / TARGET)


def critical(world: World) -> float:
    """The gain from which the loop swings without any noise."""
    return 1 / slope(world)


def error(world: World, feed: str) -> float:
    """ρ: standard deviation of one sample's estimate over the target, exactly."""
    if feed == "exact":
        return 0.0
    shape = kb.shape(np.exp(world.log_p(world.at_target)), Q)
    variance = {"k1": shape.variance_k1, "k3": shape.variance_k3}[feed]
    return float(np.sqrt(variance)) / TARGET


def matrix(pushed: float, response: float = RESPONSE) -> Values:
    """What (u, b) is multiplied by in a step; ``pushed`` is gain · κ."""
    return np.array([[1 - response, -response], [pushed, 1.0]])


@dataclass(frozen=True, slots=True)
class Spread:
    """Variances in the long run, of the KL over its target and of log β."""

    kl: float
    log_beta: float


def spread(world: World, loop: Loop, *, clip: bool = False) -> Spread:
    """The stationary variances of a loop.

    Args:
        world: Where.
        loop: Which; its gain is below the critical one.
        clip: Whether to allow for the controller's clip: it lets through part of an error and less
            of the noise, taken to be normal.
    """
    from scipy.linalg import solve_discrete_lyapunov

    told = error(world, loop.feed) / np.sqrt(loop.samples)
    passes, noise = _clipped(told) if clip and told > 0 else (1.0, told**2)
    kappa = slope(world)
    of_gradient = (RESPONSE * (loop.noise or 0.0)) ** 2 / loop.samples
    shaken = np.diag([of_gradient, loop.gain**2 * noise])
    found = solve_discrete_lyapunov(matrix(loop.gain * passes * kappa), shaken)
    return Spread(float(kappa**2 * found[0, 0]), float(found[1, 1]))


def rule_of_thumb(kappa: float, gain: float, rho: float, samples: int) -> float:
    """Sd of KL / target ≈ √(κ g / 2) · ρ / √n, where the gain and the response are small."""
    return float(np.sqrt(kappa * gain / 2 / samples)) * rho


def _clipped(told: float) -> tuple[float, float]:
    """Of a small error that a normal noise hides, which part passes; and the noise that does."""
    from scipy.stats import norm

    at = CLIP / told
    inside = float(norm.cdf(at) - norm.cdf(-at))
    square = told**2 * (inside - 2 * at * float(norm.pdf(at))) + CLIP**2 * (1 - inside)
    return inside, square
