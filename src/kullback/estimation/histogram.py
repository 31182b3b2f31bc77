"""A distribution, of log r above all, in 65536 bins that merge exactly: float32 bits, cut to 16."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 1 << 16
LARGEST = float(np.finfo(np.float32).max)  # values beyond are filed with it


def _centers() -> NDArray[np.float64]:
    """The middle of each bin: sign, exponent and seven bits of the float, then a half."""
    bits = (np.arange(BINS, dtype=np.uint32) << np.uint32(16)) | np.uint32(0x8000)
    with np.errstate(invalid="ignore"):  # the bins of NaN are never filled
        centers = bits.view(np.float32).astype(np.float64)
    centers[[0, BINS // 2]] = 0.0
    return centers


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of log r by its leading sixteen bits, with the exact ends.

    Seven bits of mantissa place a value within 0.4 % of itself at every size, so quantiles of
    k1, k2, k3 and r, all functions of log r, follow from one table. Tables add.

    Args:
        counts: Tokens in each bin, [65536].
        low: The smallest log r.
        high: The largest.
        below: The largest negative log r, −inf if there is none.
        above: The smallest log r that is not negative, inf if there is none.
    """

    counts: NDArray[np.int64]
    low: float
    high: float
    below: float
    above: float

    @classmethod
    def of(cls, log_r: NDArray[np.float64]) -> Histogram:
        """The table of these values; all finite."""
        narrow = np.clip(log_r, -LARGEST, LARGEST).astype(np.float32)
        bits = narrow.view(np.uint32) >> np.uint32(16)
        negative = log_r < 0
        return cls(
            np.bincount(bits, minlength=BINS),
            float(log_r.min(initial=np.inf)),
            float(log_r.max(initial=-np.inf)),
            float(np.where(negative, log_r, -np.inf).max(initial=-np.inf)),
            float(np.where(negative, np.inf, log_r).min(initial=np.inf)),
        )

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(
            self.counts + other.counts,
            min(self.low, other.low),
            max(self.high, other.high),
            max(self.below, other.below),
            min(self.above, other.above),
        )

    @property
    def negative_share_of_k1(self) -> float:
        """The share of tokens where r > 1, so that k1 is negative."""
        total = self.counts.sum()
        return float(self.counts[1 : BINS // 2].sum() / total) if total else float("nan")

    def filled(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The middles of the bins that have a count, ascending as bits do, and their counts."""
        filled = np.flatnonzero(self.counts)
        return np.clip(_centers()[filled], self.low, self.high), self.counts[filled]

    def quantiles(
        self, levels: tuple[float, ...], of: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> tuple[float, ...]:
        """Quantiles of a function of log r."""
        centers, counts = self.filled()
        if not len(centers):
            return tuple(float("nan") for _ in levels)
        values = of(centers)
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(counts[order])
        places = np.searchsorted(reached, np.asarray(levels) * reached[-1])
        return tuple(float(values[order][min(i, len(order) - 1)]) for i in places)

    def octaves(self, *, most: int = 12) -> NDArray[np.float64]:
        """Edges at powers of two on either side of 0, [edges], that reach over all values.

        The innermost are about a quarter of the median size, so that what is small stands apart
        from what is nothing; there are at most ``most`` to a side. The bins of this table end at
        powers of two, so no value is filed on the wrong side of an edge.
        """
        largest = min(max(-self.low, self.high, 0.0), LARGEST)
        if not largest > 0:
            return np.zeros(0)
        (median,) = self.quantiles((0.5,), np.abs)
        last = int(np.floor(np.log2(largest))) + 1
        first = int(np.floor(np.log2(median))) - 2 if median > 0 else last - most + 1
        powers = np.ldexp(1.0, np.arange(max(first, last - most + 1), last + 1)).astype(np.float64)
        return np.concatenate([-powers[::-1], powers])

    def filed(
        self,
        edges: NDArray[np.float64],
        weight: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    ) -> NDArray[np.float64]:
        """The count in each bin [edge, next edge), or the sum of a function of the values there.

        Of a function the middle of each bin of this table stands for its values.
        """
        centers, whole = self.filled()
        counts = whole.astype(np.float64)
        if weight is not None:
            counts *= weight(centers)
        places = np.searchsorted(edges, centers, side="right") - 1
        inside = (places >= 0) & (places < len(edges) - 1)
        found = np.zeros(len(edges) - 1)
        found += np.bincount(places[inside], counts[inside], len(found))
        return found
