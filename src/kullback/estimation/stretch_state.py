"""Stretches in the middle of sequences that a role did not score: another's turn, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place, is_sentinel
from kullback.estimation.keyed import added, commonest
from kullback.estimation.opening_state import KINDS, kinds_of
from kullback.estimation.role_sums import Logged, scored
from kullback.levels import segment_sums

SHORTEST = 3  # tokens; a sure policy has shorter ones


@dataclass(frozen=True, slots=True)
class StretchState:
    """The unscored stretches of a role between scored tokens. ``a + b`` counts both.

    Unscored is a log-prob of exactly 0, of −9999, none at all, or a whole number of nats that
    repeats itself: what stands where nothing was computed.

    Args:
        sequences: Sequences with a scored token.
        stretched: Those with such a stretch.
        runs: The stretches.
        tokens: Their tokens.
        missing: Those of these with no log-prob at all.
        sentinel: Those with −9999.
        own: Sum of what the role has there.
        scored: Scored tokens.
        elsewhere: Unscored tokens between scored ones that stand in no stretch.
        kinds: How many stretches have the same ids, by a hash of these; None without ids.
        others: By other role, the count and sum of its own log-probs there, if it has some.
        first: The first place.
    """

    sequences: int
    stretched: int
    runs: int
    tokens: int
    missing: int
    sentinel: int
    own: float
    scored: int
    elsewhere: int
    kinds: Counter[int | None]
    others: dict[str, Logged]
    first: Place | None

    @classmethod
    def of(cls, columns: Columns, role: str) -> StretchState:
        """The counts of one batch."""
        values, inside = columns.log_probs[role], columns.mask
        blank = inside & _is_blank(values)
        first, last = _within(columns, blank)
        long = last - first + 1 >= SHORTEST
        elsewhere = int((last - first + 1)[~long].sum())
        first, last = first[long], last[long]
        runs = [np.arange(a, b + 1) for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        stretch = np.concatenate(runs) if runs else np.zeros(0, dtype=np.int64)
        plain = inside & ~blank
        told = columns.lengths > 0
        if not plain.all():
            told = segment_sums(plain.astype(float), columns.lengths) > 0
        return cls(
            sequences=int(told.sum()),
            stretched=len(np.unique(np.searchsorted(columns.ends, first, side="right"))),
            runs=len(runs),
            tokens=len(stretch),
            missing=int(np.isnan(values[stretch]).sum()),
            sentinel=int(is_sentinel(values[stretch]).sum()),
            own=scored(values[stretch]).total,
            scored=int(np.count_nonzero(plain)),
            elsewhere=elsewhere,
            kinds=kinds_of(columns, runs),
            others={
                other: scored(theirs[stretch])
                for other, theirs in columns.log_probs.items()
                if other != role
            },
            first=columns.place(int(first[0])) if runs else None,
        )

    def __add__(self, other: StretchState) -> StretchState:
        counted = ("sequences", "stretched", "runs", "tokens", "missing", "sentinel", "own",
                   "scored", "elsewhere")  # fmt: skip
        return replace(
            self,
            kinds=commonest(self.kinds + other.kinds, KINDS),
            others=added(self.others, other.others),
            first=self.first or other.first,
            **{name: getattr(self, name) + getattr(other, name) for name in counted},
        )


def _is_blank(values: NDArray[Any]) -> NDArray[np.bool_]:
    blank = (values == 0) | np.isnan(values)
    if not np.min(values, initial=0.0) > -9000:  # nor if there is a NaN
        blank |= is_sentinel(values)
    again = values[1:] == values[:-1]
    if again.any():  # a constant other than 0: no log-prob is a whole number twice in a row
        with np.errstate(invalid="ignore"):
            again &= (values[1:] == np.round(values[1:])) & np.isfinite(values[1:])
        blank[1:] |= again
        blank[:-1] |= again
    return blank


def _within(
    columns: Columns, blank: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last token of each run of blanks with a scored token on either side."""
    if not blank.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    before, behind = columns.outside(columns.mask & ~blank)
    flags = blank & ~before & ~behind
    # What is left has a scored token of its sequence on either side, so no run crosses an end.
    edges = np.diff(flags.astype(np.int8), prepend=0, append=0)
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
