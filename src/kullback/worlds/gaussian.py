"""Normal policies, as in continuous control: log densities for log-probs, and a closed KL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from kullback.clusters import cluster_keys
from kullback.columns import Columns
from kullback.formulas import gaussian
from kullback.question import Question


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Actions of one dimension, independent of each other, all roles normal.

    Args:
        normals: Mean and standard deviation of each role's actions.
        sampler: The role that samples.
        sequences: Episodes of one sample, each a cluster of its own.
        length: Actions of an episode; 1 for independent samples.

    Example:
        >>> world = Gaussian({"rollout": (0.0, 1.0), "reference": (0.5, 1.0)})
        >>> world.exact(Question("rollout", "reference"))
        0.125
    """

    normals: Mapping[str, tuple[float, float]]
    sampler: str = "rollout"
    sequences: int = 512
    length: int = 1

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles with a policy."""
        return tuple(self.normals)

    def kl(self, p: str, q: str) -> float:
        """KL(p‖q) of one action, in nats."""
        (mean_p, std_p), (mean_q, std_q) = self.normals[p], self.normals[q]
        return float(gaussian.kl(mean_p=mean_p, std_p=std_p, mean_q=mean_q, std_q=std_q))

    def entropy(self, role: str) -> float:
        """Differential entropy of one action, ½ log 2πeσ², in nats; negative below σ = 0.24."""
        return float(np.log(self.normals[role][1]) + 0.5 * np.log(2 * np.pi * np.e))

    def exact(self, question: Question | str) -> float:
        """The answer; all prefixes are alike here."""
        question = Question.parse(question)
        each = self.kl(question.p, question.q)
        return each * self.length if question.level == "sequence_sum" else each

    def sample(self, rng: np.random.Generator, *, exact: bool = False) -> Columns:
        """Draw episodes; the columns hold every role's log densities and entropies.

        Args:
            rng: The source of chance.
            exact: Whether to log the exact KL of each action too, for every pair of roles.
        """
        actions = rng.normal(*self.normals[self.sampler], size=self.sequences * self.length)
        pairs = permutations(self.roles, 2) if exact else ()
        return Columns(
            lengths=np.full(self.sequences, self.length),
            mask=np.ones(len(actions), dtype=np.bool_),
            log_probs={role: _log_density(actions, *self.normals[role]) for role in self.roles},
            clusters=cluster_keys(np.arange(self.sequences)),
            entropy={role: np.full(len(actions), self.entropy(role)) for role in self.roles},
            exact={str(Question(p, q)): np.full(len(actions), self.kl(p, q)) for p, q in pairs},
        )


def _log_density(x: NDArray[np.float64], mean: float, std: float) -> NDArray[np.float64]:
    return -0.5 * ((x - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)
