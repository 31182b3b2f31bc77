"""Are two roles one distribution at two temperatures? Sums of a line between their log-probs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, TopK, is_number
from kullback.estimation.drawn import EVERY
from kullback.estimation.groups import Groups
from kullback.estimation.sampler_state import ENTROPY_FLOOR
from kullback.heads import ABSENT, shared
from kullback.question import Question

TERMS = ("prefixes", "entries", "xx", "xy", "yy", "draws", "own", "cross")
ROW = {name: i for i, name in enumerate(TERMS)}

Pair = tuple[str, str]

# Roles that hold one policy's weights, before an update or after it. A reference or a teacher may
# honestly be a sharper or a flatter policy, even the same one at another temperature.
ONE_POLICY = frozenset({"rollout", "old", "current"})


@dataclass(frozen=True, slots=True)
class SlopeState:
    """Sums by cluster for a pair (a, b). ``a + b`` is the state of both.

    Of one distribution at two temperatures, log p_a(i) = (T_b/T_a) log p_b(i) + c within a prefix.

    From heads, at every 16th prefix of a sequence, over the ids that both list: ``xx``, ``xy``
    and ``yy`` sum products of x = log p_b and y = log p_a, each less its mean at the prefix. Any
    choice of ids does that does not look at the token drawn.

    Without heads of both, from what a drew, with its entropy H: s = −log p_a(x) − H has mean 0 at
    each prefix, so that E s² = (T_b/T_a) E s (−log p_b(x)), whatever c is. ``own`` and ``cross``
    sum the two.

    Args:
        groups: The sums, the rows named by ``TERMS``.
    """

    groups: Groups

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # what overflows is no line
    def of(cls, columns: Columns, pair: Pair) -> SlopeState:
        """The sums of one batch."""
        sums = np.zeros((len(TERMS), len(columns.lengths)))
        rows = _of_heads if _both_headed(columns, pair) else _of_draws
        sequence, count = columns.sequence_of_token, len(columns.lengths)
        chosen, values = rows(columns, pair)
        for name, value in values.items():
            sums[ROW[name]] = np.bincount(sequence[chosen], value, count)
        return cls(Groups.of(columns.clusters, sums))

    def __add__(self, other: SlopeState) -> SlopeState:
        return SlopeState(self.groups + other.groups)

    def by_group(self, term: str) -> NDArray[np.float64]:
        """The sums of one term, [groups]."""
        return self.groups.sums[ROW[term]]

    def total(self, term: str) -> float:
        """The sum of one term over everything."""
        return float(self.by_group(term).sum())


def pairs_of(columns: Columns, questions: Collection[Question]) -> tuple[Pair, ...]:
    """The pairs that questions are about and that a batch can tell of, the sampler first.

    By heads any pair; without them the nearest copy of the sampler, by its entropy.
    """
    pairs = [(q.sampler, other) for q in questions for other in (q.p, q.q) if other != q.sampler]
    headed = [pair for pair in pairs if _both_headed(columns, pair)]
    copies = [pair for pair in nearest_copies(questions).items() if pair[0] in columns.entropy]
    return tuple(dict.fromkeys([*headed, *copies]))


def nearest_copies(questions: Collection[Question]) -> dict[str, str]:
    """By sampler the role that is nearest to holding its weights: ``old``, or else any copy."""
    nearest: dict[str, str] = {}
    for question in questions:
        for other in (question.p, question.q):
            a = question.sampler
            if other != a and ONE_POLICY.issuperset((a, other)):
                nearest[a] = other if other == "old" else nearest.get(a, other)
    return nearest


def _both_headed(columns: Columns, pair: Pair) -> bool:
    return all(role in columns.top_k and columns.top_k[role].ids.size for role in pair)


def _of_heads(columns: Columns, pair: Pair) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]]]:
    """The prefixes looked at, and the terms of their heads."""
    position = columns.position_of_token
    chosen = np.flatnonzero(columns.mask & (position % EVERY == 0))
    a, b = (
        TopK(columns.top_k[role].ids[chosen], columns.top_k[role].log_probs[chosen])
        for role in pair
    )
    both = shared(a, b)
    known = (both.ids != ABSENT) & np.isfinite(both.log_probs) & np.isfinite(a.log_probs)
    y, x = (np.where(known, one.log_probs, 0.0).astype(np.float64) for one in (a, both))
    count = known.sum(axis=1)
    share = 1 / np.maximum(count, 1)
    x = np.where(known, x - (x.sum(axis=1) * share)[:, None], 0.0)
    y = np.where(known, y - (y.sum(axis=1) * share)[:, None], 0.0)
    return chosen, {
        "prefixes": count > 1,
        "entries": (count > 1) * count,
        "xx": (x * x).sum(axis=1),
        "xy": (x * y).sum(axis=1),
        "yy": (y * y).sum(axis=1),
    }


def _of_draws(columns: Columns, pair: Pair) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]]]:
    """The prefixes with enough entropy, and the terms of the tokens drawn there."""
    entropy = columns.entropy[pair[0]]
    with np.errstate(invalid="ignore"):
        chosen = np.flatnonzero(columns.mask & (entropy >= ENTROPY_FLOOR) & (entropy < np.inf))
    log_a, log_b = (columns.log_probs[role][chosen].astype(np.float64) for role in pair)
    told = is_number(log_a) & is_number(log_b)
    surprise = np.where(told, -log_a - entropy[chosen], 0.0)
    cross = surprise * np.where(told, -log_b, 0.0)
    return chosen, {"draws": told, "own": surprise**2, "cross": cross}
