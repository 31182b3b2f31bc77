"""Every token that a small world can sample, with its probability: exact means for the examples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.estimation.interval import ratio_interval
from kullback.question import Question
from kullback.worlds import Tabular, three_tokens

WHO = (
    "Three tokens, at most three to a sequence, enumerated; p is current, q is reference, both "
    "fixed."
)


@cache
def world() -> Tabular:
    """The world of all examples: token 2 ends a sequence, 15 sequences in all."""
    return three_tokens(ends=True)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """All tokens that a role can sample, each at its prefix. A mean over them is a token_mean.

    Args:
        weight: The probability of each, given the number of tokens: they add to 1.
        sequence: The sequence that each stands in.
        log_probs: By role, its log-prob.
        entropy: By role, the entropy at its prefix.
        kl: KL(p‖q) at its prefix.
    """

    weight: NDArray[np.float64]
    sequence: NDArray[np.int64]
    log_probs: dict[str, NDArray[np.float64]]
    entropy: dict[str, NDArray[np.float64]]
    kl: NDArray[np.float64]

    @classmethod
    def of(cls, sampler: str = "current") -> Tokens:
        """Those that a role of the world samples."""
        small = world()
        alive = small.tree.alive
        weight = np.where(alive, small.probability(sampler)[:, None], 0.0)[alive]
        return cls(
            weight=weight / weight.sum(),
            sequence=np.nonzero(alive)[0],
            log_probs={role: small.by_token(role)[alive] for role in small.roles},
            entropy={role: h[small.tree.context[alive]] for role, h in small.entropy.items()},
            kl=small.kl("current", "reference")[small.tree.context[alive]],
        )

    @property
    def log_q_over_p(self) -> NDArray[np.float64]:
        """Of reference over current."""
        return self.log_probs["reference"] - self.log_probs["current"]

    def log_weight(self, sampler: str) -> NDArray[np.float64]:
        """Of current over the sampler."""
        return self.log_probs["current"] - self.log_probs[sampler]

    def mean(self, values: NDArray[Any]) -> float:
        """The exact mean of a value of each token."""
        return float(self.weight @ values)

    def deviation(self, values: NDArray[np.float64]) -> float:
        """Its exact standard deviation, over single tokens."""
        return float(np.sqrt(self.mean((values - self.mean(values)) ** 2)))


def after_first(role: str) -> NDArray[np.float64]:
    """The log-probs of a role for the token after token 0, [alphabet]."""
    return world().log_probs[role][world().tree.contexts.index((0,))]


def exact(text: str) -> float:
    """The answer to a question of the world."""
    return world().exact(Question.parse(text))


def sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of a value of each token of ``Tokens``, the sum over each sequence."""
    return np.bincount(Tokens.of().sequence, weights=values).astype(np.float64)


def coverage(sequences: int, confidence: float = 0.95) -> float:
    """How often the interval of k1 holds the KL, over all batches of so many sequences."""
    small, truth = world(), exact("KL(current||reference)")
    chances, lengths = small.probability("current"), small.lengths.astype(np.float64)
    k1 = -sums(Tokens.of().log_q_over_p)
    held = 0.0
    for batch in combinations_with_replacement(range(len(chances)), sequences):
        rows = np.array(batch)
        counts = np.bincount(rows)
        orders = factorial(sequences) / prod(factorial(n) for n in counts.tolist())
        size = lengths[rows].sum() ** 2 / (lengths[rows] ** 2).sum()
        found = ratio_interval(k1[rows], lengths[rows], effective=size, confidence=confidence)
        if found.low <= truth <= found.high:
            held += orders * float(chances[rows].prod())
    return held
