"""Where in its head each sampled token stands, in pieces that stay small however long heads are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, TopK
from kullback.heads import ABSENT, in_order

BLOCK = 1 << 13  # tokens of a piece, so that twenty entries of each stay in the cache
EVERY = 16  # tokens of a sequence, of which one prefix is compared between roles: heads say much
ENTRIES = 1 << 17  # of heads in a piece, at most: more do not stay in the cache


class Drawn(NamedTuple):
    """A piece of consecutive tokens.

    Attributes:
        start: The first of them.
        told: Whether the token counts and its prefix has a head, [tokens].
        ids: The head, largest first, [tokens, k].
        logs: Its log-probs, −inf where nothing is listed, [tokens, k].
        listed: How many entries the head has, [tokens].
        place: Of the sampled token in it; k if it is outside, [tokens].
    """

    start: int
    told: NDArray[np.bool_]
    ids: NDArray[np.int64]
    logs: NDArray[Any]
    listed: NDArray[np.int64]
    place: NDArray[np.int64]


def drawn(columns: Columns, role: str) -> Iterator[Drawn]:
    """The pieces of a role's head; none where heads or ids are not logged."""
    head, tokens = columns.top_k.get(role), columns.tokens
    if head is None or tokens is None or not head.ids.size:
        return
    width = head.ids.shape[1]
    step = max(1, min(BLOCK, ENTRIES // width))
    for start in range(0, len(columns), step):
        here = slice(start, start + step)
        ids, logs = _largest_first(TopK(head.ids[here], head.log_probs[here]), tokens[here])
        there = (ids != ABSENT) & ~np.isnan(logs)
        listed = there.sum(axis=1)
        if not there.all():
            logs = np.where(there, logs, -np.inf)
        same = (ids == tokens[here, None]) & there
        place = np.where(same.any(axis=1), same.argmax(axis=1), width)
        told = columns.mask[here] & (listed > 0)
        yield Drawn(start, told, ids, logs, listed, place)


def _largest_first(head: TopK, tokens: NDArray[np.int64]) -> TopK:
    """As ``heads.in_order`` has them, which what was read already is."""
    before, after = head.log_probs[:, :-1], head.log_probs[:, 1:]
    if ((before >= after) | np.isnan(after)).all():
        return head
    return in_order(head.ids.copy(), head.log_probs.copy(), tokens)
