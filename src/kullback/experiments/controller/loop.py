"""A policy, its KL penalty, and a controller that sets the penalty by an estimate of the KL.

The policy has one parameter: p = q exp(θ·reward), normalized. The best policy for a coefficient β
is one of these, θ = 1/β, so that nothing is lost by it and every KL along the way is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]

Q = np.array([0.2, 0.4, 0.4])
TARGET = 0.2  # nats
RESPONSE = 0.1  # of the way to the best policy that a step goes, near the target
CLIP = 0.2  # of the relative error, as in Ziegler et al. 2019
BAND, FACTOR = 1.5, 2.0  # of the rule of Schulman et al. 2017
LAMBDAS = {"k1": 0.0, "k3": 1.0}  # k1 + λ(r − 1)
TINY = 1e-300  # a variance that can be divided by


@dataclass(frozen=True, eq=False)
class World:
    """Rewards of three tokens over one reference, and where the target puts the policy.

    Args:
        name: What it is called.
        reward: Of each token.
    """

    name: str
    reward: Values

    def log_p(self, theta: Values | float) -> Values:
        """Log-probs of the policy, [..., tokens]."""
        tilted = np.log(Q) + np.asarray(theta)[..., None] * self.reward
        above = tilted - np.asarray(theta)[..., None] * self.reward.max()
        return above - np.log(_over_tokens(np.exp(above), np.ones(len(Q))))[..., None]

    def kl(self, theta: Values | float) -> Values:
        """KL(p‖q), exactly."""
        log_p = self.log_p(theta)
        return _over_tokens(np.exp(log_p), kb.k1(np.log(Q) - log_p))

    def theta(self, kl: float) -> float:
        """The θ of a policy so far from the reference."""
        from scipy.optimize import brentq

        def off(theta: float) -> float:
            return float(self.kl(theta)) - kl

        return float(brentq(off, 0.0, 200.0, xtol=1e-14))  # type: ignore[arg-type]

    @cached_property
    def at_target(self) -> float:
        """The θ at which the KL is the target; the right coefficient is its inverse."""
        return self.theta(TARGET)

    def gains(self, log_p: Values) -> tuple[Values, Values]:
        """The rewards less their mean, [..., tokens], and their variance, [...]."""
        p = np.exp(log_p)
        centered = self.reward - _over_tokens(p, self.reward)[..., None]
        return centered, np.maximum(_over_tokens(p, centered**2), TINY)


def _over_tokens(weights: Values, values: Values) -> Values:
    """Σ weight · value; several times faster than a sum over an axis of three."""
    return np.einsum("...i,...i->...", weights, values)


SMOOTH = World("smooth", np.array([0.5, 0.0, 1.0]))
HOLED = World("holed", np.array([-8.0, 0.0, 1.0]))


def proportional(estimate: Values, gain: Values) -> Values:
    """What the coefficient is multiplied by: 1 + gain · clip(estimate / target − 1, ±0.2)."""
    return 1 + gain * np.clip(estimate / TARGET - 1, -CLIP, CLIP)


def unclipped(estimate: Values, gain: Values) -> Values:
    """The same without the clip; a thousandth where it would be 0 or less."""
    return np.maximum(1 + gain * (estimate / TARGET - 1), 1e-3)


def doubling(estimate: Values, gain: Values) -> Values:
    """Twice above 1.5 targets, half below a target / 1.5; the gain is not asked."""
    del gain
    up = np.where(estimate > BAND * TARGET, FACTOR, 1.0)
    return np.where(estimate < TARGET / BAND, 1 / FACTOR, up)


Rule = Callable[[Values, Values], Values]


@dataclass(frozen=True, slots=True)
class Loop:
    """One closed loop.

    Args:
        feed: What the controller is told: the ``"exact"`` KL, or ``"k1"``, ``"k3"`` or ``"auto"``
            of the batch.
        samples: Of a batch.
        gain: Of the controller; in the source's words, steps over horizon.
        noise: Standard deviation of what is added to a sampled reward, over that of the rewards at
            the target; None for the exact gradient.
    """

    feed: str
    samples: int
    gain: float
    noise: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What loops did, [steps, loops, copies].

    Args:
        kl: The exact KL, over the target.
        log_beta: Logarithm of the coefficient over the right one.
    """

    kl: Values
    log_beta: Values

    def settled(self, skip: int) -> Run:
        """Without the first steps."""
        return Run(self.kl[skip:], self.log_beta[skip:])

    def squares(self) -> tuple[Values, Values]:
        """Mean square of the KL's relative error of each loop, with the error between copies."""
        return _between((self.kl - 1) ** 2)

    def squares_of_beta(self) -> tuple[Values, Values]:
        """The same of the logarithm of the coefficient."""
        return _between(self.log_beta**2)


def _between(values: Values) -> tuple[Values, Values]:
    """Means with their standard errors, [loops]: copies are independent, steps are not."""
    by_copy = values.mean(axis=0)
    return by_copy.mean(axis=1), by_copy.std(axis=1, ddof=1) / np.sqrt(by_copy.shape[1])


def run(
    world: World,
    loops: Sequence[Loop],
    seed: int,
    *,
    rule: Rule = proportional,
    steps: int = 2000,
    copies: int = 32,
    start: float = TARGET,
    digits: int | None = None,
) -> Run:
    """Many loops at once, each in independent copies, from the right coefficient.

    In a step the policy samples a batch, moves by the coefficient that it finds, and then the
    controller sets the next one by that batch.

    Args:
        world: Where.
        loops: Which.
        seed: Of the batches.
        rule: The controller.
        steps: How many.
        copies: Of each loop.
        start: The KL at first.
        digits: Decimals to which θ and β are rounded after every step. Where a loop swings by
            itself the last bits of a machine grow, and without this no two would agree.
    """
    rng = np.random.default_rng(seed)
    shape = (len(loops), copies)
    samples = np.array([one.samples for one in loops])[:, None]
    gain = np.array([one.gain for one in loops])[:, None]
    theta = np.full(shape, world.theta(start))
    beta = np.full(shape, 1 / world.at_target)
    kls, betas = np.empty((steps, *shape)), np.empty((steps, *shape))
    for step in range(steps):
        log_p = world.log_p(theta)
        p = np.exp(log_p)
        counts = rng.multinomial(samples, p)
        exact = _over_tokens(p, kb.k1(np.log(Q) - log_p))
        kls[step], betas[step] = exact / TARGET, np.log(beta * world.at_target)
        estimate = _told(loops, counts, log_p, exact, rng)
        theta = theta + _move(world, loops, theta, beta, log_p, counts, rng)
        beta = beta * rule(estimate, gain)
        if digits is not None:
            theta, beta = theta.round(digits), beta.round(digits)
    return Run(kls, betas)


def _told(
    loops: Sequence[Loop], counts: NDArray[Any], log_p: Values, exact: Values,
    rng: np.random.Generator,
) -> Values:  # fmt: skip
    """What each controller is told of its batch."""
    lam = np.array([LAMBDAS.get(one.feed, 0.0) for one in loops])[:, None, None]
    share = counts / np.array([one.samples for one in loops])[:, None, None]
    # r of a token that the policy all but rules out overflows; where it was not sampled, it is not
    # asked.
    log_q_over_p = np.where(counts > 0, np.log(Q) - log_p, 0.0)
    estimate = _over_tokens(share, kb.k_lambda(log_q_over_p, lam))
    for place, one in enumerate(loops):
        if one.feed == "exact":
            estimate[place] = exact[place]
        if one.feed == "auto":
            estimate[place] = [
                _auto(batch, of, rng)
                for batch, of in zip(counts[place], log_p[place], strict=True)
            ]  # fmt: skip
    return estimate


def _auto(counts: NDArray[Any], log_p: Values, rng: np.random.Generator) -> float:
    """``kb.estimate`` of a batch, whose samples come in some order."""
    drawn = rng.permutation(np.repeat(np.arange(len(Q)), counts))
    return kb.estimate(log_p=log_p[drawn], log_q=np.log(Q)[drawn], lengths=1).mean


def _move(
    world: World, loops: Sequence[Loop], theta: Values, beta: Values, log_p: Values,
    counts: NDArray[Any], rng: np.random.Generator,
) -> Values:  # fmt: skip
    """A proximal step of E[reward] − β KL in θ, by the exact gradient or by that of the batch."""
    samples = np.array([one.samples for one in loops])[:, None]
    noisy = np.array([one.noise is not None for one in loops])[:, None]
    noise = np.array([one.noise or 0.0 for one in loops])[:, None]
    rate = RESPONSE / (1 - RESPONSE) * world.at_target
    part = rate / (1 + rate * beta)
    if all(one.noise is None for one in loops):
        return part * (1 - beta * theta)
    centered, variance = world.gains(log_p)
    usual = world.gains(world.log_p(world.at_target))[1]
    # The natural gradient is 1 − βθ. Of a batch it is Σ advantage · (reward − mean) / variance,
    # where the advantage is (1 − βθ)(reward − mean) and the noise of the reward.
    seen = np.where(noisy, _over_tokens(counts / samples[..., None], centered**2) / variance, 1.0)
    shaken = noise * np.sqrt(seen * usual / variance / samples) * rng.normal(size=theta.shape)
    return part * ((1 - beta * theta) * seen + shaken)
