"""Before the first update the policy is its own start: how far is it from the reference there?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place, is_number
from kullback.estimation.keyed import added
from kullback.estimation.terms import BLOCK, summed_k3

FIRST = (0, 1)  # what the first step may be called
COMPARED = ("old", "rollout", "current", "reference")  # roles that can be equal there
ENGINES = ("old", "rollout")  # trainer and engine, with equal weights


@dataclass(frozen=True, slots=True)
class Apart:
    """Two roles at some tokens, d = log of the second − log of the first. ``a + b`` adds both.

    Args:
        tokens: Tokens with both log-probs.
        differing: Those with two different ones.
        total: Sum of d.
        k3: Sum of e^d − 1 − d.
        first: Where the first of those that differ stands.
    """

    tokens: int
    differing: int
    total: float
    k3: float
    first: Place | None

    def __add__(self, other: Apart) -> Apart:
        return Apart(
            self.tokens + other.tokens,
            self.differing + other.differing,
            self.total + other.total,
            self.k3 + other.k3,
            self.first or other.first,
        )


@dataclass(frozen=True, slots=True)
class StartState:
    """The roles that are equal before the first update, at the first step. ``a + b`` adds both.

    Of a batch its first 32768 tokens stand for all: what is looked for is in every one.

    Args:
        sequences: Sequences by the step they are of, of those that count as the first: 0 and 1.
        pairs: By step and two roles, how far the second is from the first.
    """

    sequences: dict[int, int]
    pairs: dict[tuple[int, str, str], Apart]

    @classmethod
    def of(cls, columns: Columns) -> StartState:
        """The sums of one batch; none where no step is logged, and no version."""
        roles = [role for role in COMPARED if role in columns.log_probs]
        pairs: dict[tuple[int, str, str], Apart] = {}
        sequences: dict[int, int] = {}
        for step in FIRST:
            here = _of_step(columns, step)
            if here.any():
                sequences[step] = int(here.sum())
                tokens = np.flatnonzero(np.repeat(here, columns.lengths) & columns.mask)
                for a, b in combinations(roles, 2):
                    if b == "reference" or (a, b) == ENGINES:
                        pairs[step, a, b] = _apart(columns, a, b, tokens[:BLOCK])
        return cls(sequences, pairs)

    def __add__(self, other: StartState) -> StartState:
        sequences = added(self.sequences, other.sequences)
        return StartState(sequences, added(self.pairs, other.pairs))


def _of_step(columns: Columns, step: int) -> NDArray[np.bool_]:
    """The sequences of a step; without steps, those of which every token has that version."""
    steps = columns.labels.get("step")
    if steps is not None and steps.dtype.kind in "iuf":
        return np.asarray(steps == step)
    throughout = np.zeros(len(columns.lengths), dtype=bool)
    if columns.versions is None or steps is not None or not len(columns):
        return throughout
    filled = columns.lengths > 0
    other = (columns.versions != step).astype(np.int64)
    throughout[filled] = np.add.reduceat(other, columns.starts[filled]) == 0
    return throughout


@np.errstate(over="ignore", invalid="ignore")  # what overflows tells nothing
def _apart(columns: Columns, a: str, b: str, tokens: NDArray[np.int64]) -> Apart:
    x, y = (columns.log_probs[role][tokens].astype(np.float64) for role in (a, b))
    used = is_number(x) & is_number(y)
    d = np.where(used, y, 0.0) - np.where(used, x, 0.0)
    return Apart(
        tokens=int(used.sum()),
        differing=int((d != 0).sum()),
        total=float(d.sum()),
        k3=float(summed_k3(d, np.expm1(d)).sum()),
        first=columns.place(int(tokens[(d != 0).argmax()])) if d.any() else None,
    )
