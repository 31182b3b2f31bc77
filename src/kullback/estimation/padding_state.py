"""Do sequences begin or end in a run of one constant? Then padding may be counted as tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place
from kullback.estimation.keyed import added

SHORTEST = 2  # a single certain token at the end is an honest end of text
NAMED = 20  # places kept by name; the rest are counted
KINDS = 100  # kinds of runs kept apart; honest data have few, padding one or two a role
INNER_KINDS = 20  # likewise of those within, the commonest

Kind = tuple[str, str, float, int | None]  # side, role, its log-prob there, id (None: not logged)


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one kind. ``a + b`` counts both.

    Args:
        shapes: How many there are, by the length of the sequence and that of the run in it.
        places: Where the first of them begin.
    """

    shapes: Counter[tuple[int, int]]
    places: tuple[Place, ...]

    def __add__(self, other: Runs) -> Runs:
        return Runs(self.shapes + other.shapes, (self.places + other.places)[:NAMED])

    @property
    def sequences(self) -> int:
        """Sequences that have one and are not all of it."""
        return sum(count for (width, length), count in self.shapes.items() if length < width)

    @property
    def tokens(self) -> int:
        """Tokens of all of them."""
        return sum(length * count for (_, length), count in self.shapes.items())

    @property
    def repeats(self) -> int:
        """Tokens that went on with a run of two or more."""
        return sum((n - SHORTEST) * count for (_, n), count in self.shapes.items())

    @property
    def widths(self) -> set[int]:
        """The lengths of the sequences, run included."""
        return {width for width, _ in self.shapes}


@dataclass(frozen=True, slots=True)
class Inner:
    """The runs of one log-prob (and one id) that touch neither end. ``a + b`` counts both.

    Args:
        runs: How many there are.
        tokens: Their tokens.
    """

    runs: int
    tokens: int

    def __add__(self, other: Inner) -> Inner:
        return Inner(self.runs + other.runs, self.tokens + other.tokens)

    @property
    def repeats(self) -> int:
        """Tokens that went on with a run of two or more."""
        return self.tokens - SHORTEST * self.runs


@dataclass(frozen=True, slots=True)
class PaddingState:
    """Runs of two tokens or more of one log-prob (and one id).

    Args:
        widths: Sequences by their length.
        runs: Those at an end of a sequence, by side (``begin`` or ``end``), role, log-prob and id.
        inner: Those within, by role, log-prob and id: padding has none, a policy that repeats
            itself stops again.
    """

    widths: Counter[int]
    runs: dict[Kind, Runs]
    inner: dict[tuple[str, float, int | None], Inner]

    @classmethod
    def of(cls, columns: Columns) -> PaddingState:
        """The runs of one batch."""
        runs: dict[Kind, Runs] = {}
        inner: dict[tuple[str, float, int | None], Inner] = {}
        for role, values in columns.log_probs.items():
            ids = [] if columns.tokens is None else [columns.tokens]
            first, last = repeated(columns, values, *ids)
            for side, start, _, one in at_ends(columns, first, last):
                kind = (side, role, float(values[start]), _identity(columns, start))
                runs[kind] = runs[kind] + one if kind in runs else one
            within = touches_no_end(columns, first, last)
            for (value, token), one in _counted(columns, values, first[within], last[within]):
                inner[role, value, token] = one
        return cls(Counter(columns.lengths.tolist()), _commonest(runs), _most(inner))

    def __add__(self, other: PaddingState) -> PaddingState:
        return PaddingState(
            self.widths + other.widths,
            _commonest(added(self.runs, other.runs)),
            _most(added(self.inner, other.inner)),
        )

    @property
    def sequences(self) -> int:
        """All sequences."""
        return self.widths.total()


def _commonest(runs: dict[Kind, Runs]) -> dict[Kind, Runs]:
    counts = Counter({kind: one.shapes.total() for kind, one in runs.items()})
    return {kind: runs[kind] for kind, _ in counts.most_common(KINDS)}


def _most(
    inner: dict[tuple[str, float, int | None], Inner],
) -> dict[tuple[str, float, int | None], Inner]:
    counts = Counter({kind: one.runs for kind, one in inner.items()})
    return {kind: inner[kind] for kind, _ in counts.most_common(INNER_KINDS)}


def _identity(columns: Columns, token: int) -> int | None:
    return None if columns.tokens is None else int(columns.tokens[token])


def repeated(
    columns: Columns, *values: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last token of each run: in the mask, of one sequence, alike in each."""
    like = columns.mask[1:] & columns.mask[:-1]
    for each in values:
        like &= each[1:] == each[:-1]
    borders = columns.ends[:-1]
    like[borders[(borders > 0) & (borders < len(columns))] - 1] = False
    edges = np.diff(like.astype(np.int8), prepend=0, append=0)
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def at_ends(
    columns: Columns, first: NDArray[np.int64], last: NDArray[np.int64]
) -> Iterator[tuple[str, int, int, Runs]]:
    """Of these runs those at an end of what counts of their sequence: from where to where."""
    starts, (sequence, begin, end) = columns.starts, _counted_ends(columns, first)
    begins, closes = first == begin, last == end
    for side, chosen in (("begin", begins), ("end", closes)):
        for i in np.flatnonzero(chosen).tolist():
            at, a, b = int(sequence[i]), int(first[i]), int(last[i])
            shape = (int(columns.lengths[at]), b - a + 1)
            yield side, a, b, Runs(Counter([shape]), (columns.place_in(at, a - int(starts[at])),))


def touches_no_end(
    columns: Columns, first: NDArray[np.int64], last: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which of these runs stand within their sequence."""
    _, begin, end = _counted_ends(columns, first)
    return (first > begin) & (last < end)


def _counted_ends(
    columns: Columns, tokens: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The sequences of tokens, and the first and the last token that counts of each."""
    sequence = np.searchsorted(columns.ends, tokens, side="right")
    edges = np.zeros((2, len(columns.lengths)), dtype=np.int64)
    edges[:, columns.lengths > 0] = columns.outermost(columns.mask)
    return sequence, edges[0, sequence], edges[1, sequence]


def _counted(
    columns: Columns,
    values: NDArray[np.float64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> Iterator[tuple[tuple[float, int | None], Inner]]:
    """The runs by log-prob and id, the commonest."""
    ids = np.zeros(len(first), np.int64) if columns.tokens is None else columns.tokens[first]
    levels, of_value = np.unique(values[first].astype(np.float64), return_inverse=True)
    names, of_id = np.unique(ids, return_inverse=True)
    kinds, place = np.unique(of_value * max(len(names), 1) + of_id, return_inverse=True)
    counts = np.bincount(place, minlength=len(kinds))
    tokens = np.bincount(place, last - first + 1, minlength=len(kinds))
    for i in np.argsort(-counts, kind="stable")[:INNER_KINDS]:
        value, name = divmod(int(kinds[i]), len(names))
        token = None if columns.tokens is None else int(names[name])
        yield (float(levels[value]), token), Inner(int(counts[i]), int(tokens[i]))
