"""Do sequences begin or end in one id again and again, more often than its log-probs allow?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from kullback.columns import Columns, is_sentinel
from kullback.estimation.padding_state import SHORTEST, Runs, repeated

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
        both = {role: gain + other.gains.get(role, 0.0) for role, gain in self.gains.items()}
        return Tail(self.runs + other.runs, other.gains | both)


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
        sequence = np.searchsorted(columns.ends, first, side="right")
        starts, edges = columns.starts, np.zeros((2, len(columns.lengths)), dtype=np.int64)
        edges[:, columns.lengths > 0] = columns.outermost(columns.mask)
        begins, closes = first == edges[0, sequence], last == edges[1, sequence]
        tails: dict[tuple[str, int], Tail] = {}
        for side, chosen in (("begin", begins), ("end", closes)):
            for i in np.flatnonzero(chosen).tolist():
                at, a, b = int(sequence[i]), int(first[i]), int(last[i])
                shape = (int(columns.lengths[at]), b - a + 1)
                place = columns.place_in(at, a - int(starts[at]))
                runs = Runs(Counter([shape]), (place,))
                one = Tail(runs, _gains(columns, a + SHORTEST, b + 1))
                kind = (side, int(columns.tokens[a]))
                tails[kind] = tails[kind] + one if kind in tails else one
        ids, counts = np.unique(columns.tokens[first[~begins & ~closes]], return_counts=True)
        inner = Counter(dict(zip(ids.tolist(), counts.tolist(), strict=True)))
        return cls(_most(tails), _commonest(inner))

    def __add__(self, other: TailState) -> TailState:
        both = {k: self.tails[k] + other.tails[k] for k in self.tails if k in other.tails}
        return TailState(
            _most(self.tails | other.tails | both), _commonest(self.inner + other.inner)
        )

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
        log_p = log_p[np.isfinite(log_p) & ~is_sentinel(log_p) & (log_p <= 0)]
        gains[role] = float((np.log1p(np.exp(log_p)) - np.log(2) - log_p).sum())
    return gains
