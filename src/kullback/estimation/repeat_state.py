"""Which rows are copies of others? Not all that are equal: a short answer is drawn again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.clusters import mixed
from kullback.columns import Columns, Place, is_number
from kullback.levels import segment_sums

KEPT = 4096  # different rows that are remembered: those with the smallest hashes
COMPARED = 64  # first tokens that a row is told by, with its length
LEAST = 30.0  # nats: what a row must have cost to draw, so that nobody draws it twice


@dataclass(frozen=True, slots=True)
class RepeatState:
    """How often each row is there. ``a + b`` counts both.

    A row is its first 64 tokens and their log-probs, and its length. Of more rows than 4096 those
    with the smallest hashes stand for all: each of them is counted in every part.

    Args:
        checked: Rows that cost 30 nats or more.
        keys: Their hashes, in order, the smallest 4096.
        counts: How often each is there.
        rows: The row in its source where each was seen first.
        sources: That source.
    """

    checked: int
    keys: NDArray[np.uint64]
    counts: NDArray[np.int64]
    rows: NDArray[np.int64]
    sources: NDArray[np.object_]

    @classmethod
    def of(cls, columns: Columns, role: str) -> RepeatState:
        """The counts of one batch, by the log-probs of the sampler."""
        values = columns.log_probs[role]
        told = columns.mask & is_number(values)
        cost = -segment_sums(np.where(told, values, 0.0).astype(np.float64), columns.lengths)
        dear = np.flatnonzero(cost >= LEAST)
        keys, first, counts = np.unique(
            _hashes(columns, values, dear), return_index=True, return_counts=True
        )
        rows = dear if columns.rows is None else columns.rows[dear]
        sources = np.full(len(keys), columns.source, dtype=object)
        kept = slice(KEPT)
        return cls(len(dear), keys[kept], counts[kept], rows[first][kept], sources[kept])

    def __add__(self, other: RepeatState) -> RepeatState:
        keys, first, inverse = np.unique(
            np.concatenate([self.keys, other.keys]), return_index=True, return_inverse=True
        )
        counts = np.zeros(len(keys), dtype=np.int64)
        np.add.at(counts, inverse, np.concatenate([self.counts, other.counts]))
        rows = np.concatenate([self.rows, other.rows])[first]
        sources = np.concatenate([self.sources, other.sources])[first]
        kept = slice(KEPT)
        return RepeatState(
            self.checked + other.checked, keys[kept], counts[kept], rows[kept], sources[kept]
        )

    @property
    def copies(self) -> float:
        """Rows that repeat another one: counted if all are remembered, else estimated."""
        seen = int(self.counts.sum())
        return self.checked * (seen - len(self.keys)) / seen if seen else 0.0

    @property
    def places(self) -> tuple[Place, ...]:
        """Where rows that have copies were seen first, those with the most copies first."""
        often = np.argsort(-self.counts, kind="stable")[: int((self.counts > 1).sum())]
        return tuple(Place(str(self.sources[i]), int(self.rows[i]), 0) for i in often[:20])


def _hashes(
    columns: Columns, values: NDArray[np.float64], chosen: NDArray[np.int64]
) -> NDArray[np.uint64]:
    lengths = columns.lengths[chosen]
    positions = np.arange(min(COMPARED, int(lengths.max(initial=0))))
    places = columns.starts[chosen][:, None] + positions
    inside = positions < lengths[:, None]
    places = np.where(inside, places, 0)
    bits = values[places].astype(np.float64).view(np.uint64)
    if columns.tokens is not None:
        bits = bits ^ mixed(columns.tokens[places].astype(np.uint64))
    # Mixed with the position first, or any order of the same tokens would be one row.
    words = mixed(bits ^ mixed(positions.astype(np.uint64)))
    return mixed(
        np.where(inside, words, 0).sum(axis=1, dtype=np.uint64) ^ lengths.astype(np.uint64)
    )
