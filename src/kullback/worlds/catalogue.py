"""Clean worlds: every sampler honest, every answer exact. Nothing here deserves an accusation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns
from kullback.question import Question
from kullback.worlds.gaussian import Gaussian
from kullback.worlds.mixture import Mixture
from kullback.worlds.tables import drifted, ending, holed, peaked, tempered, zipf
from kullback.worlds.tabular import three_tokens


class World(Protocol):
    """What every world answers: who is there, who samples, what is true, and what it looks like."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles with a policy."""
        ...

    @property
    def sampler(self) -> str:
        """The role that samples."""
        ...

    def exact(self, question: Question | str) -> float:
        """The true answer."""
        ...

    def sample(self, rng: np.random.Generator, *, exact: bool = False) -> Columns:
        """A fresh sample as a log would show it."""
        ...


def light_drift(prompts: int) -> Mixture:
    """Two engines with the same weights: KL 1.4e-4."""
    rng = np.random.default_rng(1)
    policy = zipf(rng)
    return _pair(prompts, policy, drifted(rng, policy, 0.02))


def smooth(prompts: int) -> Mixture:
    """A smooth difference of 0.014 nats: k3 is the better estimator, S = 0.51."""
    rng = np.random.default_rng(2)
    policy = zipf(rng)
    return _pair(prompts, policy, drifted(rng, policy, 0.2))


def strong_drift(prompts: int) -> Mixture:
    """A smooth difference of 0.37 nats: k3 loses its advantage, S = 0.85."""
    rng = np.random.default_rng(3)
    policy = zipf(rng)
    return _pair(prompts, policy, drifted(rng, policy, 1.0))


def holes_in_policy(prompts: int) -> Mixture:
    """The policy dropped 3 % of the reference's tokens by e^−3 to e^−12: S = 1000."""
    rng = np.random.default_rng(4)
    reference = zipf(rng)
    return _pair(prompts, holed(rng, reference), drifted(rng, reference, 0.05))


def deep_holes_in_policy(prompts: int) -> Mixture:
    """The policy dropped 5 % of the tokens so far that most are never sampled again."""
    rng = np.random.default_rng(5)
    reference = zipf(rng)
    policy = holed(rng, reference, share=0.05, depths=(9.0, 12.0))
    return _pair(prompts, policy, drifted(rng, reference, 0.05))


def holes_in_reference(prompts: int) -> Mixture:
    """The policy uses what the reference nearly forbids: the large terms of k1 are sampled."""
    rng = np.random.default_rng(6)
    policy = zipf(rng)
    reference = holed(rng, policy, share=0.01, depths=(6.0, 15.0), below=0.01)
    return _pair(prompts, policy, drifted(rng, reference, 0.05))


def peaked_policy(prompts: int) -> Mixture:
    """60 to 99 % of the mass on one token."""
    rng = np.random.default_rng(7)
    policy = peaked(zipf(rng), rng.uniform(0.6, 0.99, size=(256, 1)))
    return _pair(prompts, policy, drifted(rng, policy, 0.3))


def very_peaked_policy(prompts: int) -> Mixture:
    """98 to 99.99 % of the mass on one token: hardly a prefix has an entropy of 0.3."""
    rng = np.random.default_rng(8)
    policy = peaked(zipf(rng), rng.uniform(0.98, 0.9999, size=(256, 1)))
    return _pair(prompts, policy, drifted(rng, policy, 0.3))


def peaked_policy_with_holes(prompts: int) -> Mixture:
    """What RL leaves: sharper than the reference, and without some of its tokens."""
    rng = np.random.default_rng(9)
    reference = peaked(zipf(rng), rng.uniform(0.5, 0.95, size=(256, 1)))
    return _pair(prompts, holed(rng, tempered(reference, 0.8), share=0.02), reference)


def flat_reference(prompts: int) -> Mixture:
    """The reference is the policy at temperature 1.4: S = 1.16 without a hole."""
    rng = np.random.default_rng(10)
    policy = zipf(rng)
    return _pair(prompts, policy, tempered(policy, 1.4))


def random_lengths(prompts: int) -> Mixture:
    """Every policy ends its sequence with probability 0.02 at each token."""
    rng = np.random.default_rng(11)
    policy = zipf(rng)
    ends = [ending(table, 0.02) for table in (policy, drifted(rng, policy, 0.2))]
    return replace(_pair(prompts, *ends), ends=True, max_length=300)


def differing_ends(prompts: int) -> Mixture:
    """The policies differ in the probability of the end alone: 0.02 against 0.01."""
    rng = np.random.default_rng(12)
    policy = zipf(rng)
    ends = [ending(policy, probability) for probability in (0.02, 0.01)]
    return replace(_pair(prompts, *ends), ends=True, max_length=300)


def prompt_effects(prompts: int) -> Mixture:
    """The KL of a prompt is log-normal with a standard deviation of 1.2; lengths are random."""
    rng = np.random.default_rng(13)
    policy = zipf(rng)
    ends = [ending(table, 0.02) for table in (policy, drifted(rng, policy, _sizes(0.2, 1.2)))]
    return replace(_pair(prompts, *ends), ends=True, max_length=300, kinds=32)


def training_loop(prompts: int) -> Mixture:
    """Rollout engine, trainer's copy, updated policy and reference, with prompt effects."""
    rng = np.random.default_rng(14)
    rollout = zipf(rng)
    tables = {
        "rollout": rollout,
        "old": drifted(rng, rollout, 0.01),
        "current": drifted(rng, rollout, _sizes(0.1, 0.6)),
        "reference": drifted(rng, rollout, _sizes(0.4, 0.6)),
    }
    ends = {role: ending(table, 0.01) for role, table in tables.items()}
    return Mixture(ends, prompts=prompts, ends=True, max_length=300, kinds=32)


def shifted_normals(prompts: int) -> Gaussian:
    """Continuous actions: the other policy is shifted by half a standard deviation."""
    normals = {"rollout": (0.0, 1.0), "reference": (0.5, 1.0)}
    return Gaussian(normals, sequences=8 * prompts, length=20)


def three_token_language(prompts: int) -> World:
    """The smallest language whose sequences end early."""
    world = three_tokens(ends=True)
    roles = {"rollout": "current", "current": "old", "reference": "reference"}
    log_probs = {role: world.log_probs[table] for role, table in roles.items()}
    return replace(world, log_probs=log_probs, sampler="rollout", sequences=8 * prompts)


def _pair(prompts: int, rollout: NDArray[np.float64], reference: NDArray[np.float64]) -> Mixture:
    return Mixture({"rollout": rollout, "reference": reference}, prompts=prompts)


def _sizes(size: float, deviation: float) -> NDArray[np.float64]:
    """Drift of 256 contexts in 32 kinds: log KL, which goes with size², is normal over kinds."""
    quantiles = [NormalDist(0.0, deviation / 2).inv_cdf((kind + 0.5) / 32) for kind in range(32)]
    return size * np.repeat(np.exp(quantiles), 8)[:, None]


# By name, from a number of prompts to a world; the tables of a world never change.
CLEAN_WORLDS: dict[str, Callable[[int], World]] = {
    build.__name__: build
    for build in (
        light_drift,
        smooth,
        strong_drift,
        holes_in_policy,
        deep_holes_in_policy,
        holes_in_reference,
        peaked_policy,
        very_peaked_policy,
        peaked_policy_with_holes,
        flat_reference,
        random_lengths,
        differing_ends,
        prompt_effects,
        training_loop,
        shifted_normals,
        three_token_language,
    )
}
