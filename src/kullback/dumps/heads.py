"""Top-k lists to heads: the k largest log-probs at each prefix, and nothing that was appended.

Engines asked for the top k often append the sampled token when it is not among them, so that a
list has k + 1 entries, or put it first. Taken as part of the head, such an entry biases the
partly exact estimate by up to −37 %: whether a token is summed exactly would then depend on
whether it was drawn. What belongs to the head is decided by rank, for all lists alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import TopK
from kullback.dumps.ragged import Ragged

ABSENT = -1


def ranked(ids: Ragged, log_probs: Ragged, tokens: NDArray[np.int64] | None) -> TopK:
    """The lists as [tokens, longest], largest first; a shorter list ends in id −1 and NaN.

    A second entry for the sampled token is left out (engines that always put it first repeat it
    at its rank), and so is an entry without a log-prob. Among equal log-probs the sampled token
    comes last: the engine chose the others without knowing what was drawn.

    Args:
        ids: The ids of each list, one list per token, as int64.
        log_probs: Their log-probs, in nats; lists of the same lengths.
        tokens: The sampled ids, [tokens], if known.
    """
    width = int(ids.lengths.max(initial=0))
    filled = np.arange(width) < ids.lengths[:, None]
    table = _table(ids.values, filled, ABSENT)
    heights = _table(log_probs.values, filled, np.nan)
    heights[table == ABSENT] = np.nan
    drawn = np.zeros(filled.shape, np.bool_) if tokens is None else table == tokens[:, None]
    twice = drawn.sum(axis=1) > 1
    heights[twice] = np.where(_repeated(drawn[twice]), np.nan, heights[twice])
    table[np.isnan(heights)] = ABSENT
    drawn &= table != ABSENT
    wrong = _out_of_order(heights, drawn)
    if wrong.any():
        order = np.lexsort((drawn[wrong], -heights[wrong]), axis=1)
        table[wrong] = np.take_along_axis(table[wrong], order, axis=1)
        heights[wrong] = np.take_along_axis(heights[wrong], order, axis=1)
    return TopK(table, heights)


def _table(values: NDArray[Any], filled: NDArray[np.bool_], missing: float) -> NDArray[Any]:
    if filled.all():
        return values.reshape(filled.shape).copy()
    table = np.full(filled.shape, missing, dtype=values.dtype)
    table[filled] = values
    return table


def _repeated(drawn: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return drawn & (np.cumsum(drawn, axis=1) > 1)


def _out_of_order(heights: NDArray[Any], drawn: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The lists that are not largest first, missing last, the sampled token last among equals."""
    before, after = heights[:, :-1], heights[:, 1:]
    fine = (before > after) | np.isnan(after) | ((before == after) & ~drawn[:, :-1])
    return ~fine.all(axis=1)


def nominal(head: TopK, tokens: NDArray[np.int64]) -> int:
    """The k that the engine was asked for, as far as a list cannot be longer by the sampled token.

    Let M be the longest length. If some list of length M does not end, by rank, in the token that
    was sampled there, the engine gives M of its own accord: k = M. If all of them do, the last
    entry may have been appended, and k = M − 1; were it M after all, cutting every list to its
    M − 1 largest is still a valid head, since all lists are cut alike. 0 means that nothing but
    the sampled token is listed: no head at all.

    Example:
        >>> ids = np.array([[5, 6, 7], [5, 6, -1]])
        >>> log_probs = np.array([[-1, -2, -9], [-1, -2, np.nan]])
        >>> nominal(TopK(ids, log_probs), tokens=np.array([7, 6]))
        2
    """
    lengths = (head.ids != ABSENT).sum(axis=1)
    longest = int(lengths.max(initial=0))
    if not longest:
        return 0
    full = lengths == longest
    appended = (head.ids[full, longest - 1] == tokens[full]).all()
    return longest - 1 if appended else longest


def cut(head: TopK, k: int | NDArray[np.int64]) -> TopK:
    """The k largest entries of each list; k may differ from list to list, [tokens]."""
    width = min(int(np.max(k, initial=0)), head.ids.shape[1])
    ids, log_probs = head.ids[:, :width], head.log_probs[:, :width]
    inside = np.arange(width) < np.reshape(k, (-1, 1))
    return TopK(np.where(inside, ids, ABSENT), np.where(inside, log_probs, np.nan))
