"""What became of the sequences that are there: how they ended, and how they were rewarded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns
from kullback.estimation.groups import Groups
from kullback.estimation.keyed import commonest

REASONS = ("finish_reason", "stop_reason", "finish")  # labels that say why a sequence ended
REWARDS = ("reward", "score", "accuracy", "correct")
KINDS = 64  # reasons kept apart
VALUES = 3  # rewards kept apart: more than two are not judged


@dataclass(frozen=True, slots=True)
class OutcomeState:
    """Outcomes as the labels have them. ``a + b`` counts both.

    Args:
        reasons: Sequences by why they ended.
        rewards: By cluster the count, sum and sum of squares of the rewards that are numbers.
        values: The different rewards, the smallest three.
    """

    reasons: Counter[str]
    rewards: Groups
    values: tuple[float, ...]

    @classmethod
    def of(cls, columns: Columns) -> OutcomeState:
        """The counts of one batch."""
        told = next((columns.labels[name] for name in REASONS if name in columns.labels), None)
        reasons = Counter() if told is None else Counter(map(str, told.tolist()))
        given = next((columns.labels[name] for name in REWARDS if name in columns.labels), None)
        rewards = np.zeros(0) if given is None else _numbers(given)
        known = np.isfinite(rewards)
        there = rewards[known]
        keys = columns.clusters[known] if len(known) else columns.clusters[:0]
        return cls(
            reasons=commonest(reasons, KINDS),
            rewards=Groups.of(keys, np.stack([np.ones(len(there)), there, there * there])),
            values=_smallest(there.tolist()),
        )

    def __add__(self, other: OutcomeState) -> OutcomeState:
        return OutcomeState(
            commonest(self.reasons + other.reasons, KINDS),
            self.rewards + other.rewards,
            _smallest([*self.values, *other.values]),
        )


def _numbers(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Numbers and flags as they are, anything else as NaN."""
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    kept = (float(one) if isinstance(one, int | float) else np.nan for one in values.tolist())
    return np.fromiter(kept, dtype=np.float64, count=len(values))


def _smallest(values: list[float]) -> tuple[float, ...]:
    return tuple(sorted(set(values))[:VALUES])
