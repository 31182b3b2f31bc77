"""What was masked, against what was kept: by the log-ratios of tokens and of whole sequences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns
from kullback.estimation.keyed import added
from kullback.estimation.ratios import Ratios
from kullback.formulas.k_family import k3
from kullback.levels import segment_sums
from kullback.question import Question

STATISTICS = ("sum", "mean", "largest")  # of the log-ratios of a sequence


@dataclass(frozen=True, slots=True)
class Kept:
    """The ends of what was kept, and the bins of what was masked. ``a + b`` is that of both.

    Args:
        low: The smallest value that was kept, inf if there is none.
        high: The largest.
        masked: How often each value was masked, by the leading sixteen bits of its float32.
    """

    low: float
    high: float
    masked: Counter[int]

    @classmethod
    def of(cls, kept: NDArray[np.float64], masked: NDArray[np.float64]) -> Kept:
        """The ends and bins of these values, all finite."""
        bits, counts = np.unique(_bits(masked), return_counts=True)
        return cls(
            float(kept.min(initial=np.inf)),
            float(kept.max(initial=-np.inf)),
            Counter(dict(zip(bits.tolist(), counts.tolist(), strict=True))),
        )

    def __add__(self, other: Kept) -> Kept:
        return Kept(
            min(self.low, other.low), max(self.high, other.high), self.masked + other.masked
        )

    @property
    def beyond(self) -> tuple[int, int]:
        """How many masked values lie below, and how many above, all that were kept."""
        if not self.masked or not self.low <= self.high:
            return 0, 0
        bits = np.array(list(self.masked), dtype=np.uint32)
        counts = np.array(list(self.masked.values()))
        values = (bits << np.uint32(16)).view(np.float32)
        low, high = (_bits(np.array([end])) for end in (self.low, self.high))
        below = (values < np.float64(self.low)) & (bits != low)
        above = (values > np.float64(self.high)) & (bits != high)
        return int(counts[below].sum()), int(counts[above].sum())


def _bits(values: NDArray[np.float64]) -> NDArray[np.uint32]:
    with np.errstate(over="ignore"):
        return values.astype(np.float32).view(np.uint32) >> np.uint32(16)


@dataclass(frozen=True, slots=True)
class RejectionState:
    """The masked tokens and sequences that two roles scored. ``a + b`` is that of both.

    Args:
        tokens: The log-ratios of tokens: kept ones, and masked ones between them.
        sequences: The same of sequences, kept and wholly masked, by ``STATISTICS``.
        count: The masked tokens, of both kinds.
        k1: Sum of log p − log q over them.
        k3: Sum of k3.
    """

    tokens: Kept
    sequences: dict[str, Kept]
    count: int
    k1: float
    k3: float

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(cls, columns: Columns, question: Question, ratios: Ratios) -> RejectionState:
        """The sums of one batch."""
        log_r, kept = ratios.log_r, ratios.there & columns.mask
        inside = _of_sequences(log_r, kept, columns.lengths)
        masked, tokens = np.zeros(0), np.zeros(0)
        outside = dict.fromkeys(STATISTICS, masked)
        if not columns.mask.all():
            # What nobody scored is often 0 where it is not counted.
            scored = ratios.there & ~columns.mask
            for role in (question.p, question.q):
                scored &= columns.log_probs[role] != 0
            before, behind = columns.outside(columns.mask)
            hole = scored & ~before & ~behind
            counts = segment_sums(columns.mask.astype(float), columns.lengths)
            gone = scored & np.repeat(counts == 0, columns.lengths)
            tokens, masked = log_r[hole], log_r[hole | gone]
            outside = _of_sequences(log_r, gone, columns.lengths)
        return cls(
            Kept.of(log_r if kept.all() else log_r[kept], tokens),
            {name: Kept.of(inside[name], outside[name]) for name in STATISTICS},
            len(masked),
            float(-masked.sum()),
            float(k3(masked).sum()),
        )

    def __add__(self, other: RejectionState) -> RejectionState:
        return replace(
            self,
            tokens=self.tokens + other.tokens,
            sequences=added(self.sequences, other.sequences),
            count=self.count + other.count,
            k1=self.k1 + other.k1,
            k3=self.k3 + other.k3,
        )


def _of_sequences(
    log_r: NDArray[np.float64], flags: NDArray[np.bool_], lengths: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """The statistics of each sequence that has a flagged token."""
    counts = lengths
    if not flags.all():
        counts, log_r = segment_sums(flags.astype(float), lengths), np.where(flags, log_r, 0.0)
    told, filled = counts > 0, lengths > 0
    sums = segment_sums(log_r, lengths)[told]
    largest = np.zeros(len(lengths))
    if filled.any():
        starts = (np.cumsum(lengths) - lengths)[filled]
        largest[filled] = np.maximum.reduceat(np.abs(log_r), starts)
    return {"sum": sums, "mean": sums / counts[told], "largest": largest[told]}
