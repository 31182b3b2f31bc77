"""The few tokens that own most of a sum, with their place and their text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place
from kullback.estimation.terms import INDEX, Block
from kullback.question import Question

KEPT = 10


@dataclass(frozen=True, slots=True)
class Contributor:
    """A token and what it adds to the sum of |w·k1| or of w·k3.

    Args:
        size: |w·k1| or w·k3, in nats.
        place: Where it stands.
        log_p: Its log-prob under p.
        log_q: Its log-prob under q.
        token: Its id, if logged.
        text: The text before it, of it, and after it, if known.
    """

    size: float
    place: Place
    log_p: float
    log_q: float
    token: int | None
    text: tuple[str, str, str] | None


# Sizes and tokens, [candidates] each: a place and a text are looked up for the few that remain.
Candidates = tuple[NDArray[np.float64], NDArray[np.int64]]


def candidates(block: Block, term: str) -> Candidates:
    """The tokens of a block that add most; of equals, the earlier."""
    sizes = np.abs(block.rows[INDEX[term]])
    bar = np.partition(sizes, -KEPT)[-KEPT] if len(sizes) > KEPT else 0.0
    found = np.flatnonzero((sizes >= bar) & (sizes > 0))
    found = found[np.argsort(-sizes[found], kind="stable")][:KEPT]
    return sizes[found], block.start + found


def largest(
    columns: Columns, question: Question, by_block: Sequence[Candidates]
) -> tuple[Contributor, ...]:
    """The largest of the candidates of consecutive blocks; of equals, the earlier."""
    if not by_block:
        return ()
    sizes, tokens = (np.concatenate(each) for each in zip(*by_block, strict=True))
    order = np.argsort(-sizes, kind="stable")[:KEPT].tolist()
    return tuple(_one(columns, question, int(tokens[i]), float(sizes[i])) for i in order)


def _one(columns: Columns, question: Question, token: int, size: float) -> Contributor:
    return Contributor(
        size,
        columns.place(token),
        float(columns.log_probs[question.p][token]),
        float(columns.log_probs[question.q][token]),
        None if columns.tokens is None else int(columns.tokens[token]),
        columns.context(token),
    )


def merged(contributors: Iterable[Contributor]) -> tuple[Contributor, ...]:
    """The largest of several lists; of equals, the one that stands first in its source."""
    return tuple(sorted(contributors, key=lambda c: (-c.size, c.place.order))[:KEPT])
