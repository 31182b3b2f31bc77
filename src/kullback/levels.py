"""From tokens to one mean: token_mean, sequence_sum, sequence_mean; padded, packed or pooled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.columns import pack
from kullback.question import LEVELS


@dataclass(frozen=True, slots=True)
class Totals:
    """The four sums from which every level follows; they add over batches and ranks.

    A mean of means weighs a short batch like a long one. Add the totals and divide once.

    Args:
        total: Sum of the values over all tokens.
        tokens: Number of tokens.
        sequence_means: Sum over sequences of the mean of their tokens.
        sequences: Number of sequences with at least one token.

    Example:
        >>> a = totals([[1.0, 1.0, 1.0]])
        >>> b = totals([[0.1] * 20])
        >>> round((a + b).at("token_mean"), 6), round((a + b).at("sequence_mean"), 6)
        (0.217391, 0.55)
    """

    total: float
    tokens: int
    sequence_means: float
    sequences: int

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.total + other.total,
            self.tokens + other.tokens,
            self.sequence_means + other.sequence_means,
            self.sequences + other.sequences,
        )

    def at(self, level: str) -> float:
        """The mean at a level; NaN where there is nothing to average.

            token_mean = Σ values / Σ tokens
            sequence_sum = Σ values / sequences
            sequence_mean = Σ (mean of each sequence) / sequences

        Raises:
            ValueError: The level is unknown.
        """
        if level not in LEVELS:
            raise ValueError(f"level {level!r} is none of {', '.join(LEVELS)}")
        above = self.sequence_means if level == "sequence_mean" else self.total
        below = self.tokens if level == "token_mean" else self.sequences
        return above / below if below else float("nan")


def totals(
    values: ArrayLike, *, mask: ArrayLike | None = None, lengths: ArrayLike | int | None = None
) -> Totals:
    """The totals of a batch of per-token values.

    Args:
        values: Per-token values, [sequences, tokens] or flat with ``lengths``.
        mask: Which tokens count, bool or 0/1, of the same shape. What stands at the others (NaN,
            −inf, padding) is never read into a sum.
        lengths: The tokens of each sequence of flat values; 1 means independent samples.

    Returns:
        Sums in float64, in the unit of the values; sequences without a token are not counted.

    Raises:
        ValueError: The shapes do not fit, flat values come without lengths, or the mask is not
            0/1.

    Example:
        >>> totals([[0.5, 0.1, float("nan")], [1.0, 2.0, 3.0]], mask=[[1, 1, 0], [1, 1, 1]])
        Totals(total=6.6, tokens=5, sequence_means=2.3, sequences=2)
    """
    batch = pack({"values": values}, mask=mask, lengths=lengths)
    kept = np.where(batch.mask, batch.log_probs["values"], 0.0)
    sums = segment_sums(kept.astype(np.float64), batch.lengths)
    counts = segment_sums(batch.mask.astype(np.float64), batch.lengths)
    means = sums[counts > 0] / counts[counts > 0]
    return Totals(float(sums.sum()), int(counts.sum()), float(means.sum()), len(means))


def segment_sums(values: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum within each segment of the last axis; an empty segment sums to 0.

    Args:
        values: [..., tokens].
        lengths: Tokens of each segment, [segments].

    Returns:
        [..., segments].

    Example:
        >>> segment_sums(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 1])).tolist()
        [3.0, 0.0, 4.0]
    """
    sums = np.zeros((*values.shape[:-1], len(lengths)))
    filled = lengths > 0  # reduceat gives an empty segment the value at its start
    if filled.any():
        starts = (np.cumsum(lengths) - lengths)[filled]
        sums[..., filled] = np.add.reduceat(values, starts, axis=-1)
    return sums
