"""The same tokens behind the same prefix, scored twice: by how much does one role differ?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kullback.clusters import mixed
from kullback.columns import Columns, Place, is_number
from kullback.estimation.axes import settled
from kullback.estimation.keyed import added
from kullback.estimation.opening_state import openings
from kullback.estimation.repeat_state import LEAST
from kullback.levels import segment_sums
from kullback.question import presumed_sampler

SORTED_BY = 8  # tokens by which the sequences of a prompt are put in order

Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Again:
    """One role at tokens that it scored twice. ``a + b`` counts both.

    Args:
        tokens: Pairs of such tokens.
        differing: Those with two different log-probs.
        squares: Sum of d², the differences of the two.
        largest: The largest |d|.
        total: Sum of log p, of the first of the two.
        total_squares: Sum of its square.
        first: Where the first of those that differ stands.
    """

    tokens: int
    differing: int
    squares: float
    largest: float
    total: float
    total_squares: float
    first: Place | None

    def __add__(self, other: Again) -> Again:
        return Again(
            self.tokens + other.tokens,
            self.differing + other.differing,
            self.squares + other.squares,
            max(self.largest, other.largest),
            self.total + other.total,
            self.total_squares + other.total_squares,
            self.first or other.first,
        )

    @property
    def noise(self) -> float:
        """The variance of one evaluation, from the differences of two: Σ d² / 2n."""
        return self.squares / (2 * self.tokens) if self.tokens else 0.0

    @property
    def spread(self) -> float:
        """The variance of log p over these tokens."""
        if not self.tokens:
            return 0.0
        return max(self.total_squares / self.tokens - (self.total / self.tokens) ** 2, 0.0)


@dataclass(frozen=True, slots=True)
class Products:
    """Of the differences of two roles: Σ d_a d_b, Σ d_a² and Σ d_b². ``a + b`` adds both."""

    product: float
    first: float
    second: float

    def __add__(self, other: Products) -> Products:
        return Products(
            self.product + other.product, self.first + other.first, self.second + other.second
        )


@dataclass(frozen=True, slots=True)
class AgainState:
    """Every role at tokens scored twice. ``a + b`` counts both.

    Sequences of one prompt that begin alike have one prefix at each token that they share, and so
    one log-prob under any weights; rows of one prompt, or all equal rows where no prompt is logged.
    Only rows with the same step and settings are compared, and tokens of the same version.

    Args:
        roles: What was seen of each role.
        products: Of two roles whose columns differ, the products of their differences: noise of
            two evaluations is hardly correlated, another prefix moves both.
        by_step: Whether a step is logged.
    """

    roles: dict[str, Again]
    products: dict[tuple[str, str], Products]
    by_step: bool

    @classmethod
    def of(cls, columns: Columns) -> AgainState:
        """The sums of one batch."""
        by_step = "step" in columns.labels
        if columns.tokens is None or not len(columns):
            return cls({}, {}, by_step)
        one, other = _twice(columns)
        seen = {role: _Seen.of(values, one, other) for role, values in columns.log_probs.items()}
        return cls(
            {role: _again(columns, seen[role], other) for role in seen},
            {
                (a, b): _products(seen[a], seen[b])
                for a, b in combinations(seen, 2)
                if not np.array_equal(seen[a].values, seen[b].values)
            },
            by_step,
        )

    def __add__(self, other: AgainState) -> AgainState:
        return AgainState(
            added(self.roles, other.roles),
            added(self.products, other.products),
            self.by_step and other.by_step,
        )

    def correlation(self, role: str) -> float:
        """The largest correlation of a role's differences with another role's; NaN without one."""
        found = [
            one.product / (one.first * one.second) ** 0.5
            for pair, one in self.products.items()
            if role in pair and one.first > 0 and one.second > 0
        ]
        return max(found, default=float("nan"))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A role's log-probs at the first of each pair, their differences, and which count."""

    values: NDArray[np.float64]
    differences: NDArray[np.float64]
    usable: NDArray[np.bool_]

    @classmethod
    def of(
        cls, values: NDArray[np.floating], one: NDArray[np.int64], other: NDArray[np.int64]
    ) -> _Seen:
        a, b = values[one].astype(np.float64), values[other].astype(np.float64)
        usable = is_number(a) & is_number(b)
        a, b = np.where(usable, a, 0.0), np.where(usable, b, 0.0)
        return cls(a, a - b, usable)


def _again(columns: Columns, seen: _Seen, other: NDArray[np.int64]) -> Again:
    sizes, differ = np.abs(seen.differences), seen.differences != 0
    return Again(
        tokens=int(seen.usable.sum()),
        differing=int(differ.sum()),
        squares=float((sizes * sizes).sum()),
        largest=float(sizes.max(initial=0.0)),
        total=float(seen.values.sum()),
        total_squares=float((seen.values * seen.values).sum()),
        first=columns.place(int(other[differ.argmax()])) if differ.any() else None,
    )


def _products(a: _Seen, b: _Seen) -> Products:
    both = a.usable & b.usable
    x, y = np.where(both, a.differences, 0.0), np.where(both, b.differences, 0.0)
    return Products(float((x * y).sum()), float((x * x).sum()), float((y * y).sum()))


def _twice(columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of tokens that stand behind the same prefix, each with its like."""
    assert columns.tokens is not None
    places, inside = openings(columns)
    ids = np.where(inside, columns.tokens[places], -1)
    counts = inside[:, 0]
    keys, told = _keys(columns, ids, np.where(counts, places[:, 0] - columns.starts, 0))
    order = np.flatnonzero(told & counts)
    order = order[np.lexsort((*ids[order, :SORTED_BY].T[::-1], keys[order]))]
    a, b = order[:-1], order[1:]
    same = (ids[a] == ids[b]) & inside[a] & inside[b] & (keys[a] == keys[b])[:, None]
    if columns.versions is not None:
        same &= columns.versions[places[a]] == columns.versions[places[b]]
    same = np.logical_and.accumulate(same, axis=1)
    return places[a][same], places[b][same]


def _keys(
    columns: Columns, ids: NDArray[np.int64], before: NDArray[np.int64]
) -> tuple[Keys, NDArray[np.bool_]]:
    """What two sequences must have in common for their prefixes to be the same; who has it.

    ``before`` is how many tokens stand before the first inside the mask: they are of the prefix.
    """
    keys, told = columns.clusters, np.ones(len(columns.lengths), dtype=bool)
    if columns.cluster_kind != "prompt":
        keys, told = _of_rows(columns, ids)
    for name, values in columns.labels.items():
        if settled(name) and name != "prompt_id":
            _, kind = np.unique(values.astype(str), return_inverse=True)
            keys = mixed(keys ^ mixed(kind.astype(np.uint64)))
    return keys ^ _hashes_before(columns, before), told


def _of_rows(columns: Columns, ids: NDArray[np.int64]) -> tuple[Keys, NDArray[np.bool_]]:
    """Without prompts only a row that nobody draws twice is known again, by its ids and length."""
    positions = np.arange(ids.shape[1], dtype=np.uint64)
    words = mixed(ids.astype(np.uint64) ^ mixed(positions))
    keys = mixed(words.sum(axis=1, dtype=np.uint64) ^ columns.lengths.astype(np.uint64))
    _, row, counts = np.unique(keys, return_inverse=True, return_counts=True)
    told = counts[row] > 1
    if told.any():
        values = columns.log_probs[presumed_sampler(columns.log_probs).role]
        usable = columns.mask & is_number(values)
        told &= -segment_sums(np.where(usable, values, 0.0), columns.lengths) >= LEAST
    return keys, told


def _hashes_before(columns: Columns, before: NDArray[np.int64]) -> Keys:
    """A hash of the ids before the first token inside the mask, [sequences]; 0 if none are."""
    assert columns.tokens is not None
    sums, has = np.zeros(len(before), dtype=np.uint64), np.flatnonzero(before)
    if len(has):
        ends = np.cumsum(before[has])
        position = np.arange(ends[-1]) - np.repeat(ends - before[has], before[has])
        ids = columns.tokens[position + np.repeat(columns.starts[has], before[has])]
        words = mixed(ids.astype(np.uint64) ^ mixed(position.astype(np.uint64)))
        sums[has] = mixed(np.add.reduceat(words, ends - before[has]))
    return sums
