"""Steps of equal KL: around a policy, uphill by two gradients, and what they add up to.

Policies are softmax over a few tokens, so that a step in the logits, its KL and the expected reward
are sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]

# A plane of policies: two logits, that of the third token is 0.
CENTER = np.array([0.60, 0.35, 0.05])
TURNS = 72  # directions in which the plane is looked at

# A run: the reference likes the last token least, and the reward likes it most.
REFERENCE = np.array([0.55, 0.25, 0.12, 0.06, 0.02])
REWARD = np.array([0.2, 0.5, 0.3, 0.0, 1.0])
STEP = 0.01  # nats that a step may take
STEPS = 60
DONE = 0.99  # of the reward: there a run stops


def kl(p: Values, q: Values) -> float:
    """KL(p‖q)."""
    return float(kb.divergence(p, q))


def softmax(logits: Values) -> Values:
    """Probabilities of logits."""
    raw = np.exp(logits - np.max(logits))
    return raw / np.sum(raw)


def _solved(of: Callable[[float], float], level: float) -> float:
    """The step at which something that grows from 0 reaches a level."""
    from scipy.optimize import brentq

    far = 1.0
    while of(far) < level:
        far *= 2
    found = brentq(lambda t: of(t) - level, 0.0, far, xtol=1e-12, rtol=1e-12)  # type: ignore[arg-type]
    return float(found)  # type: ignore[arg-type]


def metric() -> Values:
    """The Fisher information of the two logits at the center."""
    p = CENTER[:2]
    return np.diag(p) - np.outer(p, p)


def _round() -> Values:
    """Points of the unit circle, the first once more at the end."""
    angles = np.linspace(0.0, 2 * np.pi, TURNS + 1)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _away(step: Values) -> float:
    """KL(center‖center moved by a step in its two logits)."""
    return kl(CENTER, softmax(np.log(CENTER) + np.append(step, 0.0)))


def circle(level: float) -> Values:
    """The circle as large as the ellipse of a level."""
    radius = np.sqrt(2 * level) / np.linalg.det(metric()) ** 0.25
    return radius * _round()


def ellipse(level: float) -> Values:
    """Where the Fisher quadratic has a level: points as dense at the tips as along the sides."""
    values, axes = np.linalg.eigh(metric())
    return np.sqrt(2 * level) * (_round() / np.sqrt(values)) @ axes.T


def equal_kl(level: float) -> Values:
    """Where the KL itself has a level, in the directions of the ellipse."""
    found = []
    for step in ellipse(level):
        length = _solved(lambda t, step=step: _away(t * step), level)
        found.append(length * step)
    return np.array(found)


def on_circle(level: float) -> tuple[float, float]:
    """The least and the largest KL of the steps on the circle of a level."""
    found = [_away(step) for step in circle(level)]
    return min(found), max(found)


@dataclass(frozen=True, slots=True)
class Run:
    """The policies of a run, the reference first."""

    policies: tuple[Values, ...]

    def drift(self) -> list[float]:
        """KL(policy‖reference) after each step."""
        return [kl(policy, REFERENCE) for policy in self.policies]

    def taken(self) -> list[float]:
        """KL(old‖new) of each step."""
        return [kl(old, new) for old, new in zip(self.policies, self.policies[1:], strict=False)]

    def rewards(self) -> list[float]:
        """The expected reward after each step."""
        return [float(policy @ REWARD) for policy in self.policies]

    def moved(self) -> int:
        """How many steps were taken before there was nothing left to gain."""
        return sum(taken > 0 for taken in self.taken())

    def reached(self, reward: float) -> int:
        """The first step with such a reward."""
        return next(step for step, value in enumerate(self.rewards()) if value >= reward)


@cache
def walk(kind: str, beta: float = 0.0) -> Run:
    """Uphill by steps of equal KL, while there is something to gain.

    Args:
        kind: ``natural``, along the advantages, or ``plain``, along the gradient by the logits.
        beta: Of the penalty β KL(policy‖reference).
    """
    policy, policies = REFERENCE, [REFERENCE]
    for _ in range(STEPS):
        policy = _stepped(policy, kind, beta)
        policies.append(policy)
    return Run(tuple(policies))


def _stepped(policy: Values, kind: str, beta: float) -> Values:
    value = REWARD - beta * np.log(policy / REFERENCE)
    uphill = value - policy @ value
    if beta == 0 and policy @ REWARD >= DONE * np.max(REWARD):
        return policy
    direction = uphill if kind == "natural" else policy * uphill
    logits = np.log(policy)

    def moved(t: float) -> Values:
        return softmax(logits + t * direction)

    # A natural step of 1/β is at the optimum of the penalized reward: none goes beyond.
    if beta > 0 and kl(policy, moved(1 / beta)) <= STEP:
        return moved(1 / beta)
    return moved(_solved(lambda t: kl(policy, moved(t)), STEP))


def leashed(beta: float) -> Values:
    """The optimum of reward − β KL(policy‖reference)."""
    return softmax(np.log(REFERENCE) + REWARD / beta)


@dataclass(frozen=True, slots=True)
class Wandering:
    """KL from the start after steps of a normal policy, over draws of random directions."""

    steps: int
    exact: float
    mean: float
    z: float


def wander(steps: int, seed: int, dimensions: int = 16, draws: int = 2_000) -> Wandering:
    """Steps of equal KL in random directions: |sum of unit vectors|² times the KL of one.

    Its mean is the number of steps, its variance 2 T (T − 1) / d, for independent directions.
    """
    rng = np.random.default_rng([seed, steps])
    total = np.zeros((draws, dimensions))
    for _ in range(steps):
        step = rng.normal(size=(draws, dimensions))
        total += step / np.linalg.norm(step, axis=1, keepdims=True)
    values = STEP * np.sum(total**2, axis=1)
    exact = STEP * steps
    error = STEP * np.sqrt(2 * steps * (steps - 1) / dimensions / draws)
    mean = float(np.mean(values))
    return Wandering(steps, exact, mean, (mean - exact) / error if steps > 1 else 0.0)
