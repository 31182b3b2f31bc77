"""How sequences begin and end: with tokens that a role did not score, or all alike."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place, is_number, is_sentinel
from kullback.estimation.keyed import added, commonest
from kullback.estimation.role_sums import Logged, scored
from kullback.levels import segment_sums

COMPARED = 32  # tokens of two openings that are compared, at most
KINDS = 100  # openings kept apart; beyond, the commonest are known well enough


@dataclass(frozen=True, slots=True)
class OpeningState:
    """The unscored openings of a role, or its unscored ends. ``a + b`` counts both.

    Unscored is a log-prob of exactly 0, of −9999, or none at all; an opening is a run of them from
    the first token inside the mask on, in a sequence that has scored tokens behind it. An end is
    the same from the last token on backwards.

    Args:
        sequences: Sequences with a scored token.
        opened: Those with such an opening.
        tokens: The tokens of the openings.
        scored: Scored tokens.
        elsewhere: Unscored tokens that stand at neither end.
        kinds: How many openings have the same ids, by a hash of these; None without ids.
        others: By other role, the count and sum of its own log-probs in the openings, if it has
            some.
        first: The first place.
    """

    sequences: int
    opened: int
    tokens: int
    scored: int
    elsewhere: int
    kinds: Counter[int | None]
    others: dict[str, Logged]
    first: Place | None

    @classmethod
    def of(cls, columns: Columns, role: str) -> tuple[OpeningState, OpeningState]:
        """The openings and the ends of one batch."""
        values, inside = columns.log_probs[role], columns.mask
        blank = inside & ((values == 0) | np.isnan(values) | is_sentinel(values))
        told = segment_sums((inside & ~blank).astype(float), columns.lengths) > 0
        within = np.repeat(told, columns.lengths)
        sides: list[list[NDArray[np.int64]]] = [[], []]
        if blank.any():
            outer = columns.outside(inside & ~blank)
            sides = [_runs(columns, blank & side & within) for side in outer]
        elsewhere = int(blank[within].sum()) - sum(len(run) for runs in sides for run in runs)
        plain = int(inside.sum() - blank.sum())
        counts = {"sequences": int(told.sum()), "scored": plain, "elsewhere": elsewhere}
        one, other = (cls._of_runs(columns, role, runs, counts) for runs in sides)
        return one, other

    @classmethod
    def _of_runs(
        cls,
        columns: Columns,
        role: str,
        runs: list[NDArray[np.int64]],
        counts: dict[str, int],
    ) -> OpeningState:
        places = np.concatenate(runs) if runs else np.zeros(0, dtype=np.int64)
        return cls(
            opened=len(runs),
            tokens=len(places),
            kinds=kinds_of(columns, runs),
            others={
                other: scored(columns.log_probs[other][places])
                for other in columns.log_probs
                if other != role
            },
            first=columns.place(int(places[0])) if runs else None,
            **counts,
        )

    def __add__(self, other: OpeningState) -> OpeningState:
        counted = ("sequences", "opened", "tokens", "scored", "elsewhere")
        return replace(
            self,
            kinds=commonest(self.kinds + other.kinds, KINDS),
            others=added(self.others, other.others),
            first=self.first or other.first,
            **{name: getattr(self, name) + getattr(other, name) for name in counted},
        )


def _runs(columns: Columns, flags: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """The flagged places, a list for each sequence that has any."""
    places = np.flatnonzero(flags)
    cuts = 1 + np.flatnonzero(np.diff(columns.sequence_of_token[places]))
    return np.split(places, cuts) if len(places) else []


def kinds_of(columns: Columns, runs: list[NDArray[np.int64]]) -> Counter[int | None]:
    """How many runs have the same ids, by a hash of these; None without ids.

    An id that repeats itself counts once: padding is of one kind, whatever its length.
    """
    if columns.tokens is None:
        return Counter({None: len(runs)})
    spoken = (columns.tokens[run].astype("<i8") for run in runs)
    changes = (ids[np.append(True, ids[1:] != ids[:-1])] for ids in spoken)
    found: Counter[int | None] = Counter(zlib.crc32(ids.tobytes()) for ids in changes)
    return commonest(found, KINDS)


@dataclass(frozen=True, slots=True)
class SharedState:
    """How far pairs of sequences begin alike, and what that costs. ``a + b`` is that of both.

    Given the first of a pair and what the second was asked, the second repeats its first m tokens
    with probability exp(Σ log p) over these tokens, by its own log-probs. So the surprise of what
    they share, −Σ log p, is at least w with probability e^−w at most, and its sum over N pairs is
    no larger, in law, than that of N exponential variables. A pair of equals adds nothing, nor does
    a run of one id at the start: a copy and padding are other faults.

    Args:
        pairs: Pairs.
        alike: Those that share their first token and are not equal.
        tokens: Tokens that they share.
        surprise: Sum of −log p over these, by the second of the pair.
        first: Where the first of the pairs that are alike stands.
    """

    pairs: int
    alike: int
    tokens: int
    surprise: float
    first: Place | None

    @classmethod
    def of(cls, columns: Columns, role: str) -> SharedState:
        """The sums of one batch, whose tokens are known."""
        assert columns.tokens is not None
        values = columns.log_probs[role]
        usable = columns.mask & is_number(values)
        even = _pairs(columns)
        places, inside = openings(columns)
        (one, other), (in_one, in_other) = places[even.T], inside[even.T]
        both = np.logical_and.accumulate(in_one & in_other, axis=1)
        agree = columns.tokens[one] == columns.tokens[other]
        same = both & np.logical_and.accumulate(agree, axis=1)
        alike = same[:, 0] & ~_equal(columns, even, ~(both & ~agree).any(axis=1))
        padding = np.logical_and.accumulate(
            columns.tokens[other] == columns.tokens[other[:, :1]], 1
        )
        counted = same & alike[:, None] & ~(padding & padding[:, 1:2])
        kept = counted & usable[other]
        return cls(
            pairs=len(even),
            alike=int(alike.sum()),
            tokens=int(counted.sum()),
            surprise=-float(np.where(kept, values[other], 0.0).sum(dtype=np.float64)),
            first=columns.place(int(other[alike.argmax(), 0])) if alike.any() else None,
        )

    def __add__(self, other: SharedState) -> SharedState:
        return SharedState(
            self.pairs + other.pairs,
            self.alike + other.alike,
            self.tokens + other.tokens,
            self.surprise + other.surprise,
            self.first or other.first,
        )


def _pairs(columns: Columns) -> NDArray[np.int64]:
    """Neighbors of one prompt, and of those that are left over, each in one pair, [pairs, 2]."""
    told = np.flatnonzero(segment_sums(columns.mask.astype(float), columns.lengths) > 0)
    if columns.cluster_kind != "prompt":
        return told[: len(told) // 2 * 2].reshape(-1, 2)
    told = told[np.argsort(columns.clusters[told], kind="stable")]
    _, first, counts = np.unique(columns.clusters[told], return_index=True, return_counts=True)
    rank = np.arange(len(told)) - np.repeat(first, counts)
    last = np.repeat(counts, counts) - 1
    begins = np.flatnonzero((rank % 2 == 0) & (rank < last))
    alone = told[(rank % 2 == 0) & (rank == last)]
    strangers = alone[: len(alone) // 2 * 2].reshape(-1, 2)
    return np.concatenate([np.column_stack([told[begins], told[begins + 1]]), strangers])


def openings(columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The first tokens inside the mask of each sequence, and which of them are, [sequences, 32]."""
    before, _ = columns.outside(columns.mask)
    begin = columns.starts + segment_sums(before.astype(float), columns.lengths).astype(np.int64)
    places = begin[:, None] + np.arange(max(1, min(COMPARED, int(columns.lengths.max(initial=0)))))
    inside = places < columns.ends[:, None]
    places = np.where(inside, places, 0)
    return places, inside & columns.mask[places] if len(columns) else inside


def _equal(
    columns: Columns, pairs: NDArray[np.int64], so_far: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether the two of a pair have the same tokens throughout, [pairs].

    ``so_far`` says whether what was compared of their openings is the same.
    """
    assert columns.tokens is not None
    equal = np.zeros(len(pairs), dtype=np.bool_)
    for i in np.flatnonzero(so_far):
        one, other = (
            columns.tokens[start:end][columns.mask[start:end]]
            for start, end in zip(columns.starts[pairs[i]], columns.ends[pairs[i]], strict=True)
        )
        equal[i] = np.array_equal(one, other)
    return equal
