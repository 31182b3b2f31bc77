"""Is what was logged of a distribution that of one? Heads that weigh too much, or contradict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import BFLOAT16, Columns, Place, TopK, fits_bfloat16, is_sentinel

ROUNDING = 0.01  # nats that a log-softmax in low precision may be off
LEAST_ENTROPY = -0.1  # nats; honest ones in bfloat16 were seen below 0, but not as far


@dataclass(frozen=True, slots=True)
class DistributionState:
    """Counts over the prefixes of a role inside the mask. ``a + b`` counts both.

    All of them allow for rounding, at each log-prob.

    Args:
        heads: Prefixes with a logged head.
        heavy: Those at which the head, with the sampled token if it is outside, weighs more than 1.
        mass: The largest weight.
        differing: Sampled tokens whose log-prob is not that of the same id in the head.
        difference: The largest difference, in nats.
        entropies: Prefixes with a logged entropy.
        negative: Entropies of tokens below 0.
        lowest: The smallest entropy.
        first: The first place of each fault that was seen, by fault.
    """

    heads: int
    heavy: int
    mass: float
    differing: int
    difference: float
    entropies: int
    negative: int
    lowest: float
    first: dict[str, Place]

    @classmethod
    def of(cls, columns: Columns, role: str) -> DistributionState:
        """The counts of one batch."""
        none = np.zeros(len(columns), dtype=np.bool_)
        told, heavy, mass, differing, difference = none, none, 0.0, none, 0.0
        head = columns.top_k.get(role)
        if head is not None and head.ids.size and columns.tokens is not None:
            told, weight, heavy, apart = _weighed(columns, role, head, columns.tokens)
            mass = float(weight.max(initial=0.0))
            differing, difference = apart > 0, float(apart.max(initial=0.0))
        known, negative, lowest = none, none, np.inf
        if role in columns.entropy:
            entropy = columns.entropy[role]
            known = columns.mask & np.isfinite(entropy)
            lowest = float(np.where(known, entropy, np.inf).min(initial=np.inf))
            if columns.tokens is not None:  # that of a density may be negative
                negative = known & (entropy < LEAST_ENTROPY)
        faults = {"heavy": heavy, "differing": differing, "negative": negative}
        return cls(
            heads=int(told.sum()),
            mass=mass,
            difference=difference,
            entropies=int(known.sum()),
            lowest=lowest,
            first=columns.first_places(faults),
            **{name: int(flags.sum()) for name, flags in faults.items()},
        )

    def __add__(self, other: DistributionState) -> DistributionState:
        return DistributionState(
            heads=self.heads + other.heads,
            heavy=self.heavy + other.heavy,
            mass=max(self.mass, other.mass),
            differing=self.differing + other.differing,
            difference=max(self.difference, other.difference),
            entropies=self.entropies + other.entropies,
            negative=self.negative + other.negative,
            lowest=min(self.lowest, other.lowest),
            first=other.first | self.first,
        )


def _weighed(
    columns: Columns, role: str, head: TopK, tokens: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Where there is a head, its weight, where that is too much, and how far it contradicts.

    The weight is of the head and of the sampled token where that is outside; the contradiction is
    of the sampled token and the same id in the head, in nats, 0 where rounding explains it.
    """
    there = (head.ids >= 0) & ~np.isnan(head.log_probs)
    told = columns.mask & there.any(axis=1)
    sampled = columns.log_probs[role].astype(np.float64)
    scored = told & ~np.isnan(sampled) & ~is_sentinel(sampled)
    same = (head.ids == tokens[:, None]) & there
    place = same.argmax(axis=1)
    hit = same[np.arange(len(columns)), place]
    extra = np.where(scored & ~hit, sampled, -np.inf)
    logs = head.log_probs if there.all() else np.where(there, head.log_probs, -np.inf)
    with np.errstate(over="ignore"):
        weight = np.exp(logs).sum(axis=1, dtype=np.float64) + np.exp(extra)
    weight, heavy = np.where(told, weight, 0.0), told & (weight > 1.0)
    own = head.log_probs[np.arange(len(columns)), place].astype(np.float64)
    asked = scored & hit & (sampled != own)
    sampled, own = np.where(asked, sampled, 0.0), np.where(asked, own, 0.0)
    apart = np.abs(sampled - own)
    relative = 0.0
    if heavy.any() or (apart > 2 * ROUNDING).any():
        narrow = fits_bfloat16(head.log_probs[there]) or fits_bfloat16(sampled[scored])
        relative = BFLOAT16 * narrow
    if heavy.any():  # as little as it can have weighed before it was rounded
        logs = np.column_stack([logs[heavy], extra[heavy]]).astype(np.float64)
        logs -= ROUNDING + relative * np.abs(np.where(logs > -np.inf, logs, 0.0))
        with np.errstate(over="ignore"):
            heavy[heavy] = np.exp(logs).sum(axis=1) > 1.0
    allowed = 2 * (ROUNDING + relative * np.minimum(np.abs(sampled), np.abs(own)))
    return told, weight, heavy, np.where(apart > allowed, apart, 0.0)
