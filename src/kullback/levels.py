"""From tokens to one mean: token_mean, sequence_sum, sequence_mean; padded, packed or pooled.

With torch and JAX all of it can be traced and differentiated; with NumPy it gives plain numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.arrays import (
    at_least_float32,
    cast,
    namespace,
    only_where,
    own,
    sum_dtype,
    sum_segments,
)
from kullback.lengths import WITH_LENGTHS, grid, not_adding_up, sequence_lengths
from kullback.question import LEVELS
from kullback.uneven import end_to_end


class Totals(NamedTuple):
    """The four sums from which every level follows; they add over batches and ranks.

    A mean of means weighs a short batch like a long one. Add the totals and divide once.

    Attributes:
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

    total: Any
    tokens: Any
    sequence_means: Any
    sequences: Any

    # Totals add where other tuples are joined.
    def __add__(self, other: Totals) -> Totals:  # type: ignore[override]
        return Totals(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def __radd__(self, other: int) -> Totals:
        # ``sum`` begins with 0.
        return self if other == 0 else NotImplemented

    def at(self, level: str) -> Any:
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
        xp = namespace(above)
        if xp is np:
            return above / below if below else float("nan")
        return xp.where(below > 0, above / xp.where(below > 0, below, 1), xp.nan)


def totals(values: Any, *, mask: Any = None, lengths: Any = None) -> Totals:
    """The totals of a batch of per-token values.

    Args:
        values: Per-token values, [sequences, tokens], a list of rows of any lengths, or flat with
            ``lengths``; of NumPy, torch or JAX.
        mask: Which tokens count, bool or 0/1, of the same shape. What stands at the others (NaN,
            −inf, padding) is never read into a sum; `log_q_over_p` keeps it out of gradients too.
        lengths: The tokens of each sequence of flat values; 1 means independent samples.

    Returns:
        Sums in float64 where the device has it, in the unit of the values; sequences without a
        token are not counted. Python numbers for NumPy, scalars of the library for torch and JAX.

    Raises:
        ValueError: The shapes do not fit, flat values come without lengths, a list of lengths does
            not add up, or (NumPy) an array of them, or the mask is not 0/1; with torch and JAX the
            sums are NaN then.
        TypeError: The arrays belong to different libraries.

    Example:
        >>> totals([[0.5, 0.1, float("nan")], [1.0, 2.0, 3.0]], mask=[[1, 1, 0], [1, 1, 1]])
        Totals(total=6.6, tokens=5, sequence_means=2.3, sequences=2)
    """
    given, lengths = end_to_end({"the values": values, "the mask": mask}, lengths)
    values, mask = given["the values"], given["the mask"]
    xp = namespace(values) if mask is None else namespace(values, mask)
    array = at_least_float32(values, xp)
    if mask is None:
        kept, counts = array, xp.ones_like(array)
    else:
        kept, counts = selected(array, mask, xp)
    sums, tokens = (_by_sequence(one, lengths, xp) for one in (kept, counts))
    filled = tokens > 0
    means = xp.where(filled, sums / xp.where(filled, tokens, 1.0), 0.0)
    found = Totals(xp.sum(sums), xp.sum(tokens), xp.sum(means), xp.sum(filled))
    if xp is not np:
        return found
    return Totals(*(kind(x) for kind, x in zip((float, int, float, int), found, strict=True)))


def log_q_over_p(*, log_p: Any, log_q: Any, mask: Any = None) -> Any:
    """The log-ratio log q(x) − log p(x) of sampled tokens, 0 outside the mask.

    Half precision is widened before one is subtracted from the other. What stands outside the mask
    (−inf, NaN, padding) is replaced before any formula sees it; left out afterwards, it would
    still make the gradient NaN, since 0 times infinity is no number.

    Args:
        log_p: Log-probs under p, any shape, in nats; of NumPy, torch or JAX.
        log_q: Log-probs under q of the same tokens.
        mask: Which tokens count, bool or 0/1, of the same shape.

    Returns:
        One number per token, in nats, in float32 at least.

    Raises:
        ValueError: The shapes differ, or (NumPy) the mask is not 0/1; with torch and JAX the ratio
            is NaN then.
        TypeError: The arrays belong to different libraries.

    Example:
        >>> log_q_over_p(log_p=[-1.0, 0.0], log_q=[-1.5, float("-inf")], mask=[1, 0])
        array([-0.5,  0. ])
    """
    given = (log_p, log_q) if mask is None else (log_p, log_q, mask)
    xp = namespace(*given)
    p, q = at_least_float32(log_p, xp), at_least_float32(log_q, xp)
    if p.shape != q.shape:
        raise ValueError(
            f"log_p has shape {tuple(p.shape)}, log_q {tuple(q.shape)}: give both for the same "
            "tokens"
        )
    if mask is None:
        return q - p
    return selected(q, mask, xp)[0] - selected(p, mask, xp)[0]


def selected(values: Any, mask: Any, xp: Any) -> tuple[Any, Any]:
    """The values where the mask is 1 and 0 elsewhere, and the mask as numbers.

    Raises:
        ValueError: The shapes differ, or (NumPy) the mask is not 0/1.

    Example:
        >>> selected(np.array([0.5, np.nan]), np.array([1, 0]), np)
        (array([0.5, 0. ]), array([1., 0.]))
    """
    flags = own(mask, xp)
    if flags.shape != values.shape:
        raise ValueError(
            f"the mask has shape {tuple(flags.shape)}, the values {tuple(values.shape)}"
        )
    chosen, counts = xp.where(flags != 0, values, 0.0), cast(flags != 0, values.dtype, xp)

    def complaint(_: Any) -> ValueError:
        return ValueError("the mask holds other values than 0 and 1: it is no weight")

    return only_where((flags == 0) | (flags == 1), chosen, xp, complaint), counts


def _by_sequence(values: Any, lengths: Any, xp: Any) -> Any:
    """The sum over the tokens of each sequence, [sequences]."""
    if xp is np:
        cuts = sequence_lengths(values.shape, lengths)
        return segment_sums(values.reshape(-1).astype(np.float64), cuts)
    dtype = sum_dtype(values, xp)
    if lengths is None or isinstance(lengths, (int, np.integer)):
        length = None if lengths is None else int(lengths)
        return xp.sum(values.reshape(grid(values.shape, length)), axis=-1, dtype=dtype)
    if values.ndim != 1:
        raise ValueError(WITH_LENGTHS)
    if isinstance(lengths, list) and sum(lengths) != values.shape[0]:
        raise ValueError(not_adding_up(lengths, values.shape[0]))
    return sum_segments(cast(values, dtype, xp), lengths, xp)


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
