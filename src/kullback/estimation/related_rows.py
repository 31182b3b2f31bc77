"""Which sequences have log-probs of two roles that go together, and which have not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place

SHORTEST = 16  # tokens of both; below, chance can turn a correlation
VARIED = 0.1  # nats²: a side that varies less says nothing of its tokens
NEAR = 0.85  # correlation from which a sequence is of the same tokens
APART = 0.5  # and below which it hardly is


@dataclass(frozen=True, slots=True)
class RelatedRows:
    """Sequences by the correlation of two roles in them. ``a + b`` counts both.

    Args:
        told: Sequences that are long and varied enough to tell.
        near: Those whose log-probs go together.
        apart: Those whose log-probs hardly do.
        first: The first token of the first of these.
        blank: Those, as long, in which the second role has a log-prob of 0 throughout, and the
            first varies.
    """

    told: int
    near: int
    apart: int
    first: Place | None
    blank: int

    @classmethod
    def of(cls, columns: Columns, moments: NDArray[np.float64]) -> RelatedRows:
        """The counts of one batch.

        Args:
            columns: The batch.
            moments: Count, sums, sums of squares and of products of both, [6, sequences].
        """
        count, x, y, xx, yy, xy = moments
        floor = count * count * VARIED
        across, down = count * xx - x * x, count * yy - y * y
        told = (count >= SHORTEST) & (across > floor) & (down > floor)
        spread = np.sqrt(np.where(told, across * down, 1.0))
        size = np.where(told, count * xy - x * y, 0.0) / spread
        apart = np.flatnonzero(told & (size < APART))
        first = columns.place_in(int(apart[0]), 0) if len(apart) else None
        blank = (count >= SHORTEST) & (across > floor) & (y == 0) & (yy == 0)
        near = int((told & (size >= NEAR)).sum())
        return cls(int(told.sum()), near, len(apart), first, int(blank.sum()))

    def __add__(self, other: RelatedRows) -> RelatedRows:
        return RelatedRows(
            self.told + other.told,
            self.near + other.near,
            self.apart + other.apart,
            self.first or other.first,
            self.blank + other.blank,
        )
