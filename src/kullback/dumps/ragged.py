"""Lists of different lengths, packed end to end: one list per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


class TokenBytes(Sequence[bytes | None]):
    """The bytes of each token in one buffer; None for a special id.

    A dump of 20 million tokens stays three arrays: a bytes object exists only while it is looked
    at, and the bytes of a whole span are one slice of the buffer (``joined``).

    Args:
        data: The bytes of all tokens, end to end, uint8.
        starts: Where each token's bytes start, and the last one's end, [tokens + 1]; a special id
            has none.
        known: False for a special id, [tokens].
    """

    __slots__ = ("data", "known", "starts")

    def __init__(
        self, data: NDArray[np.uint8], starts: NDArray[np.integer], known: NDArray[np.bool_]
    ) -> None:
        self.data = data
        self.starts = starts
        self.known = known

    def __len__(self) -> int:
        return len(self.known)

    @overload
    def __getitem__(self, index: int) -> bytes | None: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes | None]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes | None] | None:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        token = range(len(self))[index]
        return self.joined(token, token + 1) if self.known[token] else None

    def __iter__(self) -> Iterator[bytes | None]:
        return (self[i] for i in range(len(self)))

    def joined(self, first: int, last: int) -> bytes:
        """The bytes of the tokens from ``first`` up to ``last``; special ids have none."""
        return self.data[self.starts[first] : self.starts[last]].tobytes()

    def keep(self, chosen: NDArray[np.bool_]) -> TokenBytes:
        """The tokens that are marked."""
        lengths = np.diff(self.starts)
        data = self.data[np.repeat(chosen, lengths)]
        return TokenBytes(data, starts(lengths[chosen]), self.known[chosen])

    def part(self, first: int, last: int) -> TokenBytes:
        """The tokens from ``first`` up to ``last``; nothing is copied but the starts."""
        cuts = self.starts[first : last + 1]
        return TokenBytes(self.data[cuts[0] : cuts[-1]], cuts - cuts[0], self.known[first:last])

    @classmethod
    def end_to_end(cls, pieces: Sequence[TokenBytes]) -> TokenBytes:
        """All tokens of several, one after another."""
        lengths = np.concatenate([np.diff(one.starts) for one in pieces])
        data = np.concatenate([one.data for one in pieces])
        return cls(data, starts(lengths), np.concatenate([one.known for one in pieces]))

    def spread(self, places: NDArray[np.int64], size: int) -> TokenBytes:
        """The same tokens at these places among ``size``; the others become special ids."""
        lengths, known = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        lengths[places], known[places] = np.diff(self.starts), self.known
        return TokenBytes(self.data, starts(lengths), known)


def part(values: Any, first: int, last: int) -> Any:
    """The entries from ``first`` up to ``last`` of an array, a list or any class of this file."""
    if isinstance(values, np.ndarray | list):
        return values[first:last]
    return values.part(first, last)


def end_to_end(pieces: Sequence[Any]) -> Any:
    """Several arrays, lists or objects of one class of this file, one after another."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate(pieces)
    if isinstance(first, list):
        return list(chain.from_iterable(pieces))
    return type(first).end_to_end(pieces)


def starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each list starts, and the last one ends, [lists + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


@dataclass(frozen=True, slots=True)
class Ragged:
    """One list per row, packed end to end.

    Args:
        values: The entries of all lists: an array, ``TokenBytes``, or lists again.
        lengths: The length of each list, [rows].
        known: False where a row has null in place of a list (its length is 0), [rows].
    """

    values: Any
    lengths: NDArray[np.int64]
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Sequence[NDArray[Any] | None]) -> Ragged:
        """Arrays, one per row."""
        some = [row for row in rows if row is not None]
        return cls(
            np.concatenate(some) if some else np.zeros(0),
            np.array([0 if row is None else len(row) for row in rows], dtype=np.int64),
            np.array([row is not None for row in rows], dtype=np.bool_),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def row_of(self) -> NDArray[np.int64]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def keep(self, chosen: NDArray[np.bool_]) -> Ragged:
        """The rows that are marked."""
        entries = np.repeat(chosen, self.lengths)
        values = self.values
        values = values[entries] if isinstance(values, np.ndarray) else values.keep(entries)
        return Ragged(values, self.lengths[chosen], self.known[chosen])

    def part(self, first: int, last: int) -> Ragged:
        """The rows from ``first`` up to ``last``; no entry is copied."""
        start = int(self.lengths[:first].sum())
        stop = start + int(self.lengths[first:last].sum())
        values = part(self.values, start, stop)
        return Ragged(values, self.lengths[first:last], self.known[first:last])

    @classmethod
    def end_to_end(cls, pieces: Sequence[Ragged]) -> Ragged:
        """All rows of several, one after another."""
        return cls(
            end_to_end([one.values for one in pieces]),
            np.concatenate([one.lengths for one in pieces]),
            np.concatenate([one.known for one in pieces]),
        )

    def filled(self, lengths: NDArray[np.int64], missing: float | bool) -> Any:
        """The entries, with ``missing`` (or an empty list) in the rows that have null."""
        if self.known.all():
            return self.values
        places = np.flatnonzero(np.repeat(self.known, lengths))
        size = int(lengths.sum())
        if not isinstance(self.values, np.ndarray):
            return self.values.spread(places, size)
        values = np.full(size, missing, dtype=self.values.dtype)
        values[places] = self.values
        return values

    def spread(self, places: NDArray[np.int64], size: int) -> Ragged:
        """The same lists at these places among ``size``; the others are null."""
        lengths, known = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        lengths[places], known[places] = self.lengths, self.known
        return Ragged(self.values, lengths, known)


@dataclass(frozen=True, slots=True)
class Runs:
    """One value per row, of which neighbors are mostly equal: each run of equal ones once.

    Args:
        values: The value of each run; two runs side by side differ.
        lengths: The rows of each run, [runs].
    """

    values: list[Any]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, values: Sequence[Any], lengths: Sequence[int] | NDArray[np.int64]) -> Runs:
        """Values and how often each comes; neighbors may be equal."""
        new = [i == 0 or not _same(values[i - 1], one) for i, one in enumerate(values)]
        firsts = np.flatnonzero(new)
        rows = np.asarray(lengths, dtype=np.int64)
        return cls(
            [values[i] for i in firsts.tolist()], np.add.reduceat(rows, firsts) if new else rows
        )

    def __len__(self) -> int:
        return int(self.lengths.sum())

    @property
    def firsts(self) -> NDArray[np.int64]:
        """The first row of each run."""
        return np.cumsum(self.lengths) - self.lengths

    def run_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The run that each of these rows belongs to."""
        return np.searchsorted(np.cumsum(self.lengths), rows, side="right")

    def part(self, first: int, last: int) -> Runs:
        """The rows from ``first`` up to ``last``."""
        ends = np.cumsum(self.lengths).clip(first, last)
        lengths = np.diff(ends, prepend=first)
        some = np.flatnonzero(lengths)
        return Runs([self.values[i] for i in some.tolist()], lengths[some])

    @classmethod
    def end_to_end(cls, pieces: Sequence[Runs]) -> Runs:
        """All rows of several, one after another."""
        values = list(chain.from_iterable(one.values for one in pieces))
        return cls.of(values, np.concatenate([one.lengths for one in pieces]))


def _same(one: Any, other: Any) -> bool:
    return one == other or (one != one and other != other)
