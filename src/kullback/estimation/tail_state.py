"""Do sequences begin or end in one id again and again, more often than its log-probs allow?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from kullback.columns import Columns, is_number
from kullback.estimation.keyed import added
from kullback.estimation.padding_state import (
    SHORTEST,
    Runs,
    at_ends,
    repeated,
    touches_no_end,
)

KINDS = 20  # ids kept apart, the commonest


@dataclass(frozen=True, slots=True)
class Tail:
    """The runs of one id at one end of sequences. ``a + b`` is that of both.

    Args:
        runs: The runs.
        gains: By role, what bets win that the run goes on, in nats: at each token from the third
            on, on (1 + p)/2 where the role says p.
    """

    runs: Runs
    gains: dict[str, float]

    def __add__(self, other: Tail) -> Tail:
        return Tail(self.runs + other.runs, added(self.gains, other.gains))


@dataclass(frozen=True, slots=True)
class TailState:
    """Runs of two counted tokens or more of one id. ``a + b`` is that of both.

    Args:
        tails: Those at an end of what is counted of a sequence, by side (``begin`` or ``end``) and
            id.
        inner: How many stop within, by id.
    """

    tails: dict[tuple[str, int], Tail]
    inner: Counter[int]

    @classmethod
    def of(cls, columns: Columns) -> TailState:
        """The runs of one batch; none without ids."""
        if columns.tokens is None:
            return cls({}, Counter())
        first, last = repeated(columns, columns.tokens)
        tails: dict[tuple[str, int], Tail] = {}
        for side, a, b, runs in at_ends(columns, first, last):
            one = Tail(runs, _gains(columns, a + SHORTEST, b + 1))
            kind = (side, int(columns.tokens[a]))
            tails[kind] = tails[kind] + one if kind in tails else one
        within = touches_no_end(columns, first, last)
        ids, counts = np.unique(columns.tokens[first[within]], return_counts=True)
        inner = Counter(dict(zip(ids.tolist(), counts.tolist(), strict=True)))
        return cls(_most(tails), _commonest(inner))

    def __add__(self, other: TailState) -> TailState:
        tails = _most(added(self.tails, other.tails))
        return TailState(tails, _commonest(self.inner + other.inner))

    def stopped(self, side: str, identity: int) -> int:
        """Runs of this id that stop before their sequence does."""
        far = self.tails.get(("end" if side == "begin" else "begin", identity))
        return self.inner[identity] + (far.runs.sequences if far else 0)


def _most(tails: dict[tuple[str, int], Tail]) -> dict[tuple[str, int], Tail]:
    kept = sorted(tails.items(), key=lambda item: (-item[1].runs.shapes.total(), item[0]))
    return dict(kept[:KINDS])


def _commonest(counts: Counter[int]) -> Counter[int]:
    kept = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Counter(dict(kept[: 10 * KINDS]))


def _gains(columns: Columns, start: int, stop: int) -> dict[str, float]:
    """What the bets on these tokens win, by role; on what was not logged there is none."""
    if start >= stop:
        return dict.fromkeys(columns.log_probs, 0.0)
    gains = {}
    for role, values in columns.log_probs.items():
        log_p = values[start:stop].astype(np.float64)
        log_p = log_p[is_number(log_p) & (log_p <= 0)]
        gains[role] = float((np.log1p(np.exp(log_p)) - np.log(2) - log_p).sum())
    return gains
