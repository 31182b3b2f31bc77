"""How old were the weights that sampled? By token, and how many of them one sequence has."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place
from kullback.levels import segment_sums

OLDEST = 1000  # steps; older ones count alike
FAR = np.iinfo(np.int64).max  # past every version


@dataclass(frozen=True, slots=True)
class AgeState:
    """Versions behind the step, over the tokens inside the mask. ``a + b`` counts both.

    Args:
        versioned: Tokens whose version is logged.
        ages: Tokens by step − version, or by the label ``staleness``; none without one.
        early: Tokens whose version is above their step: the two count differently.
        sequences: Sequences with a versioned token.
        several: Those with tokens of more than one version.
        span: The most versions, from the first to the last, in one sequence.
        first: Where the first of the several begins its second version.
    """

    versioned: int
    ages: Counter[int]
    early: int
    sequences: int
    several: int
    span: int
    first: Place | None

    @classmethod
    def of(cls, columns: Columns) -> AgeState:
        """The counts of one batch."""
        if columns.versions is None or not len(columns):
            ages, early = _ages(columns.labels.get("staleness"), _counted(columns))
            return cls(0, ages, early, 0, 0, 0, None)
        known = columns.mask & (columns.versions >= 0)
        starts = columns.starts[columns.lengths > 0]
        highest = np.maximum.reduceat(np.where(known, columns.versions, -1), starts)
        lowest = np.minimum.reduceat(np.where(known, columns.versions, FAR), starts)
        there = highest >= 0
        spans = np.where(there, highest - lowest, 0)
        ages, early = _behind(columns, known, lowest, spans)
        return cls(
            versioned=int(known.sum()),
            ages=ages,
            early=early,
            sequences=int(there.sum()),
            several=int((spans > 0).sum()),
            span=int(spans.max(initial=0)),
            first=_change(columns, known, starts, spans) if spans.any() else None,
        )

    def __add__(self, other: AgeState) -> AgeState:
        return AgeState(
            self.versioned + other.versioned,
            self.ages + other.ages,
            self.early + other.early,
            self.sequences + other.sequences,
            self.several + other.several,
            max(self.span, other.span),
            self.first or other.first,
        )


def _counted(columns: Columns) -> NDArray[np.float64]:
    return segment_sums(columns.mask.astype(np.float64), columns.lengths)


def _behind(
    columns: Columns,
    known: NDArray[np.bool_],
    lowest: NDArray[np.int64],
    spans: NDArray[np.int64],
) -> tuple[Counter[int], int]:
    """Tokens by step − version: sequence by sequence, and token by token in the mixed ones."""
    steps = columns.labels.get("step")
    if steps is None:
        return _ages(columns.labels.get("staleness"), _counted(columns))
    if steps.dtype.kind not in "iuf":
        return Counter(), 0
    filled = columns.lengths > 0
    steps, tokens = steps[filled].astype(np.float64), columns.lengths[filled]
    counts = np.add.reduceat(known.astype(np.int64), columns.starts[filled])
    ages, early = _ages(steps - lowest, np.where(spans > 0, 0, counts))
    if spans.any():
        assert columns.versions is not None
        mixed = known & np.repeat(spans > 0, tokens)
        behind = np.repeat(steps, tokens)[mixed] - columns.versions[mixed]
        more, earlier = _ages(behind, np.ones(len(behind)))
        ages, early = ages + more, early + earlier
    return ages, early


def _ages(behind: NDArray[Any] | None, tokens: NDArray[Any]) -> tuple[Counter[int], int]:
    """Tokens by their age, and how many are younger than nothing."""
    if behind is None or behind.dtype.kind not in "iuf":
        return Counter(), 0
    there = np.isfinite(behind) & (tokens > 0)
    ages, counts = behind[there].astype(np.float64), tokens[there].astype(np.int64)
    total: Counter[int] = Counter()
    for age in np.unique(np.minimum(ages[ages >= 0], OLDEST)):
        # Of ages that are no whole numbers several may fall together.
        total[int(age)] += int(counts[np.minimum(ages, OLDEST) == age].sum())
    return total, int(counts[ages < 0].sum())


def _change(
    columns: Columns,
    known: NDArray[np.bool_],
    starts: NDArray[np.int64],
    spans: NDArray[np.int64],
) -> Place:
    """Where the first sequence of several versions leaves that of its first token."""
    assert columns.versions is not None
    start = int(starts[int((spans > 0).argmax())])
    end = int(columns.ends[np.searchsorted(columns.ends, start, side="right")])
    tokens = start + np.flatnonzero(known[start:end])
    changed = columns.versions[tokens] != columns.versions[tokens[0]]
    return columns.place(int(tokens[changed.argmax()]))
