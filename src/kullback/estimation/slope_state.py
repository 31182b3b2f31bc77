"""Are two roles one distribution at two temperatures? Sums of a line between their log-probs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, TopK, is_sentinel
from kullback.estimation.groups import Groups
from kullback.estimation.sampler_state import ENTROPY_FLOOR
from kullback.heads import ABSENT, shared
from kullback.levels import segment_sums
from kullback.question import Question

EVERY = 16  # tokens of a sequence, of which one prefix is looked at: a head says much at once
TERMS = ("prefixes", "entries", "xx", "xy", "yy", "draws", "own", "cross")
ROW = {name: i for i, name in enumerate(TERMS)}

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SlopeState:
    """Sums by cluster for a pair (a, b). ``a + b`` is the state of both.

    Of one distribution at two temperatures, log p_a(i) = (T_b/T_a) log p_b(i) + c within a prefix.

    From heads, at every 16th prefix of a sequence, over the ids that both list: ``xx``, ``xy``
    and ``yy`` sum products of x = log p_b and y = log p_a, each less its mean at the prefix. Any
    choice of ids does that does not look at the token drawn.

    From what a drew, with its entropy H: s = −log p_a(x) − H has mean 0 at each prefix, so that
    E s² = (T_b/T_a) E s (−log p_b(x)), whatever c is. ``own`` and ``cross`` sum the two.

    Args:
        groups: The sums, the rows named by ``TERMS``.
    """

    groups: Groups

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # what overflows is no line
    def of(cls, columns: Columns, pair: Pair) -> SlopeState:
        """The sums of one batch."""
        rows = np.zeros((len(TERMS), len(columns)))
        if all(role in columns.top_k for role in pair):
            _add_heads(rows, columns, pair)
        if pair[0] in columns.entropy:
            _add_draws(rows, columns, pair)
        return cls(Groups.of(columns.clusters, segment_sums(rows, columns.lengths)))

    def __add__(self, other: SlopeState) -> SlopeState:
        return SlopeState(self.groups + other.groups)

    def by_group(self, term: str) -> NDArray[np.float64]:
        """The sums of one term, [groups]."""
        return self.groups.sums[ROW[term]]

    def total(self, term: str) -> float:
        """The sum of one term over everything."""
        return float(self.by_group(term).sum())


def pairs_of(columns: Columns, questions: Iterable[Question]) -> Iterator[Pair]:
    """The pairs that questions are about and that a batch can tell of, the sampler first."""
    for question in questions:
        for pair in ((question.sampler, question.p), (question.sampler, question.q)):
            if pair[0] != pair[1] and (
                pair[0] in columns.entropy or all(role in columns.top_k for role in pair)
            ):
                yield pair


def _add_heads(rows: NDArray[np.float64], columns: Columns, pair: Pair) -> None:
    position = np.arange(len(columns)) - np.repeat(columns.starts, columns.lengths)
    chosen = np.flatnonzero(columns.mask & (position % EVERY == 0))
    a, b = (
        TopK(columns.top_k[role].ids[chosen], columns.top_k[role].log_probs[chosen])
        for role in pair
    )
    if not (a.ids.size and b.ids.size):
        return
    both = shared(a, b)
    known = (both.ids != ABSENT) & np.isfinite(both.log_probs) & np.isfinite(a.log_probs)
    y, x = (np.where(known, one.log_probs, 0.0).astype(np.float64) for one in (a, both))
    count = known.sum(axis=1)
    share = 1 / np.maximum(count, 1)
    x = np.where(known, x - (x.sum(axis=1) * share)[:, None], 0.0)
    y = np.where(known, y - (y.sum(axis=1) * share)[:, None], 0.0)
    rows[ROW["prefixes"], chosen], rows[ROW["entries"], chosen] = count > 1, (count > 1) * count
    for name, product in (("xx", x * x), ("xy", x * y), ("yy", y * y)):
        rows[ROW[name], chosen] = product.sum(axis=1)


def _add_draws(rows: NDArray[np.float64], columns: Columns, pair: Pair) -> None:
    log_a, log_b = (columns.log_probs[role].astype(np.float64) for role in pair)
    entropy = columns.entropy[pair[0]].astype(np.float64)
    told = columns.mask & np.isfinite(entropy) & (entropy >= ENTROPY_FLOOR)
    for values in (log_a, log_b):
        told &= np.isfinite(values) & ~is_sentinel(values)
    surprise = np.where(told, -log_a - entropy, 0.0)
    rows[ROW["draws"]], rows[ROW["own"]] = told, surprise**2
    rows[ROW["cross"]] = surprise * np.where(told, -log_b, 0.0)
