"""Heads: the k largest log-probs at each prefix, and nothing that was appended.

Engines asked for the top k often append the sampled token when it is not among them, so that a
list has k + 1 entries, or put it first. Taken as part of the head, such an entry biases the
partly exact estimate: whether a token is summed exactly would then depend on whether it was
drawn. What belongs to the head is decided by rank, for all lists alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import TopK, is_sentinel

ABSENT = -1


def in_order(
    ids: NDArray[np.int64], log_probs: NDArray[Any], tokens: NDArray[np.int64] | None
) -> TopK:
    """The lists largest first; what is left out of one ends it as id −1 and NaN.

    A second entry for the sampled token is left out (engines that always put it first repeat it
    at its rank), and so is an entry without a log-prob. Among equal log-probs the sampled token
    comes last: the engine chose the others without knowing what was drawn. The arrays are changed
    in place.

    Args:
        ids: The ids of each list, [tokens, k]; −1 where there is none.
        log_probs: Their log-probs, in nats.
        tokens: The sampled ids, [tokens], if known.

    Example:
        >>> head = in_order(np.array([[7, 5, 6]]), np.array([[-9.0, -1.0, -2.0]]), np.array([7]))
        >>> head.ids.tolist()
        [[5, 6, 7]]
    """
    table, heights = ids, log_probs
    heights[table == ABSENT] = np.nan
    drawn = np.zeros(table.shape, np.bool_) if tokens is None else table == tokens[:, None]
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


def shared(p: TopK, q: TopK) -> TopK:
    """The log-probs that q's lists have for the ids of p's; id −1 and NaN where they have none.

    Engines list each model's own top k, so the two sets differ, more so the further the policies
    are apart. What both list was decided before the token was drawn. An id without a log-prob, or
    with −9999, is not known.

    Args:
        p: Heads of one role, [tokens, k].
        q: Heads of the other, [tokens, any k].

    Returns:
        The ids and the log-probs under q, in the places of p, [tokens, k].

    Example:
        >>> p = TopK(np.array([[3, 1]]), np.array([[-0.5, -1.5]]))
        >>> q = TopK(np.array([[2, 3]]), np.array([[-0.7, -0.9]]))
        >>> both = shared(p, q)
        >>> both.ids.tolist(), both.log_probs.tolist()
        ([[3, -1]], [[-0.9, nan]])
    """
    width, other = p.ids.shape[1], q.ids.shape[1]
    ids = np.concatenate([_known(p), _known(q)], axis=1)
    # One number of id, side and place: sorted, p's entry stands right before q's of the same id.
    bits = max(width, other, 1).bit_length()
    side = 1 << bits
    keys = _fitting(ids, 62 - bits) << bits + 1
    keys |= np.concatenate([np.arange(width), side + np.arange(other)])
    keys.sort(axis=1)
    pair = np.flatnonzero((keys[:, :-1] ^ keys[:, 1:]) >> bits == 1)
    row = pair // (width + other - 1)
    mine, theirs = (keys.ravel()[pair + row + i] & side - 1 for i in (0, 1))
    both = ids.ravel()[row * (width + other) + mine]
    logs = np.where(both == ABSENT, np.nan, q.log_probs[row, theirs])
    found = np.full(p.ids.shape, ABSENT), np.full(p.ids.shape, np.nan, q.log_probs.dtype)
    for values, known in zip(found, (both, logs), strict=True):
        values.ravel()[row * width + mine] = known
    return TopK(*found)


def _fitting(ids: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The ids, or what tells them apart as well, if one of them has more bits than so many."""
    if -(1 << bits) <= ids.min(initial=0) and ids.max(initial=0) < 1 << bits:
        return ids
    return np.unique(ids, return_inverse=True)[1].reshape(ids.shape)


def _known(head: TopK) -> NDArray[np.int64]:
    lost = np.isnan(head.log_probs) | is_sentinel(head.log_probs)
    return np.where(lost, ABSENT, head.ids)
