"""Do tokens follow the three before them as they did before, more often than log-probs allow?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.clusters import mixed
from kullback.columns import Columns, Place, is_sentinel

BEHIND = 3  # tokens that a token is expected by
LOOKED = 1 << 15  # tokens of a batch that are looked at, for the time it takes
DEAR = 2.0  # nats: a token that a sharper sampler would not draw again and again
NAMED = 3  # places kept by name
OPENING = 4  # first counted tokens of a sequence
WINS = 1.0  # nats that a sequence won
FEWEST = 3  # sequences that did; fewer are no template
GIVEN = 0.5  # share of what is won that dear tokens win: a sharper sampler wins on likely ones


@dataclass(frozen=True, slots=True)
class RecallState:
    """What bets win that a token follows the three before it as it last did. ``a + b`` is of both.

    The bet is placed where it did so twice in a row, on the token and by shares that are known
    before it is drawn: whoever draws by p loses all of the share with probability 1 − p and wins
    1/p with probability p, so that the product of all gains has mean 1 at most. A prompt, a
    template and another's turn, which all of a file say in the same words, win where p is in
    doubt. A run of one id is not bet on, nor does a copy of a whole sequence win: padding and
    copies are other faults.

    Args:
        bets: Tokens that were bet on.
        log_gain: The log of what all of them won, in nats.
        dear: What those of them won that p gives less than e^−2.
        dearer: How many these are.
        size: Sum of −log p over the tokens that came as expected.
        sequences: Sequences that won a nat or more.
        opening: Those of them that won it with their first four counted tokens.
        first: Where the dearest stand.
    """

    bets: int
    log_gain: float
    dear: float
    dearer: int
    size: float
    sequences: int
    opening: int
    first: tuple[tuple[float, Place], ...]

    @classmethod
    def of(cls, columns: Columns, role: str) -> RecallState:
        """The bets on one batch, whose tokens are known, in its order."""
        assert columns.tokens is not None
        size = min(len(columns), LOOKED)
        ids, inside = columns.tokens[:size].astype(np.uint64), columns.mask[:size]
        values = columns.log_probs[role][:size].astype(np.float64)
        ends = np.minimum(columns.ends[columns.lengths > 0], size)
        ends = ends[: np.searchsorted(ends, size) + 1]
        lengths = np.diff(ends, prepend=0)
        position = np.arange(size) - np.repeat(ends - lengths, lengths)
        usable = inside & np.isfinite(values) & ~is_sentinel(values) & (values <= 0)
        places, came, share = _bets(ids, position, usable)
        log_p = values[places]
        gains = np.log1p(np.where(came, share * np.expm1(-log_p), -share))
        sequence = np.searchsorted(ends, places, side="right")
        copied = _copies(ids, position, ends)[sequence]
        won = np.where(copied, np.minimum(gains, 0.0), gains)
        dear = came & (log_p < -DEAR) & (won > 0)
        before = np.cumsum(inside) - inside  # counted tokens
        early = before[places] - before[(ends - lengths)[sequence]] < OPENING
        total, at_first = (
            np.bincount(sequence, one, minlength=len(ends)) for one in (won, won * early)
        )
        top = np.argsort(-np.where(dear, won, 0.0), kind="stable")[:NAMED]
        return cls(
            bets=len(places),
            log_gain=float(won.sum()),
            dear=float(won[dear].sum()),
            dearer=int(dear.sum()),
            size=-float(log_p[came].sum()),
            sequences=int((total >= WINS).sum()),
            opening=int(((total >= WINS) & (at_first >= WINS)).sum()),
            first=tuple((float(won[i]), columns.place(int(places[i]))) for i in top if dear[i]),
        )

    @property
    def cause(self) -> str:
        """Whose tokens win: those of the ``sampler``, of a ``prompt`` or of an ``environment``."""
        if self.dear < GIVEN * self.log_gain or self.sequences < FEWEST:
            return "sampler"
        return "prompt" if 2 * self.opening >= self.sequences else "environment"

    def __add__(self, other: RecallState) -> RecallState:
        places = sorted(self.first + other.first, key=lambda one: (-one[0], one[1].order))
        return RecallState(
            self.bets + other.bets,
            self.log_gain + other.log_gain,
            self.dear + other.dear,
            self.dearer + other.dearer,
            self.size + other.size,
            self.sequences + other.sequences,
            self.opening + other.opening,
            tuple(places[:NAMED]),
        )


def _bets(
    ids: NDArray[np.uint64], position: NDArray[np.int64], usable: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]]:
    """The tokens that are bet on, whether they came as expected, and the share that was staked."""
    keys = np.zeros(len(ids), dtype=np.uint64)
    for back in range(1, BEHIND + 1):
        earlier = np.zeros(len(ids), dtype=np.uint64)  # what is before a sequence is nothing
        earlier[back:] = ids[:-back] + np.uint64(1)
        keys = mixed(keys ^ np.where(position >= back, earlier, np.uint64(0)))
    order = np.argsort(keys, kind="stable")
    sorted_keys, came_ids = keys[order], ids[order]
    again, came = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    again[1:] = sorted_keys[1:] == sorted_keys[:-1]
    came[1:] = again[1:] & (came_ids[1:] == came_ids[:-1])
    number = np.arange(len(ids))
    streak = np.zeros(len(ids), dtype=np.int64)
    streak[1:] = (number - np.maximum.accumulate(np.where(came, 0, number)))[:-1]
    expected = np.roll(came_ids, 1)
    one, two = (ids[np.maximum(order - back, 0)] for back in (1, 2))
    run = (expected == one) & (one == two)
    placed = np.flatnonzero(again & (streak > 0) & usable[order] & ~run)
    return order[placed], came[placed], streak[placed] / (streak[placed] + 2.0)


def _copies(
    ids: NDArray[np.uint64], position: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The sequences that repeat an earlier one from end to end."""
    words = mixed(ids ^ mixed(position.astype(np.uint64)))
    sums = np.cumsum(words, dtype=np.uint64)
    rows = np.diff(sums[ends - 1], prepend=np.uint64(0)) ^ position[ends - 1].astype(np.uint64)
    _, first = np.unique(rows, return_index=True)
    copied = np.ones(len(ends), dtype=bool)
    copied[first] = False
    return copied
