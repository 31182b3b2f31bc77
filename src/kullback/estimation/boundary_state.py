"""Where one sequence of a row ends and the next begins: how far two roles are apart there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place, is_number
from kullback.estimation.keyed import added
from kullback.formulas.k_family import k3
from kullback.question import Question

KINDS = 8  # last ids kept apart, the commonest: of most rows it is one
CUT = 4.0  # nats²: above, squares count alike, so that no few tokens decide


@dataclass(frozen=True, slots=True)
class Edge:
    """Sums over first tokens. ``a + b`` is that of both.

    Args:
        tokens: How many there are.
        squares: Sum of (log p − log q)², each cut at 4.
        fourths: Sum of the squares of these.
        k1: Sum of log p − log q.
        k3: Sum of k3.
        first: Where the first of them stands.
    """

    tokens: int
    squares: float
    fourths: float
    k1: float
    k3: float
    first: Place | None

    def __add__(self, other: Edge) -> Edge:
        return Edge(
            self.tokens + other.tokens,
            self.squares + other.squares,
            self.fourths + other.fourths,
            self.k1 + other.k1,
            self.k3 + other.k3,
            self.first or other.first,
        )


@dataclass(frozen=True, slots=True)
class BoundaryState:
    """The first tokens of sequences that share a row. ``a + b`` is that of both.

    Args:
        rows: Of the first sequence of each row.
        packed: Of the others, where the file tells sequences apart.
        inner: Where it does not: of the tokens behind each id that ends the row and stands within
            it as well, by that id.
    """

    rows: Edge
    packed: Edge
    inner: dict[int, Edge]

    @classmethod
    def of(cls, columns: Columns, question: Question, borders: Borders) -> BoundaryState:
        """The sums of one batch, given what ``borders`` says of it."""
        filled = columns.lengths > 0
        starts = columns.starts[filled]
        within = None if columns.within is None else columns.within[filled]
        later = np.zeros(len(starts), dtype=bool) if within is None else within > 0
        rows, packed = _edges(columns, question, starts, later.astype(np.int64), 2)
        inner = _edges(columns, question, borders.places, borders.kinds, len(borders.names))
        return cls(rows, packed, dict(zip(borders.names, inner, strict=True)))

    def __add__(self, other: BoundaryState) -> BoundaryState:
        found = added(self.inner, other.inner)
        kept = sorted(found.items(), key=lambda item: -item[1].tokens)[:KINDS]
        return BoundaryState(self.rows + other.rows, self.packed + other.packed, dict(kept))


class Borders(NamedTuple):
    """The places right behind an id that also ends its row: the kind of each, and the kinds."""

    places: NDArray[np.int64]
    kinds: NDArray[np.int64]
    names: list[int]


def borders(columns: Columns) -> Borders:
    """Where a row may hold several sequences that the file does not tell apart."""
    if columns.tokens is None or columns.within is not None or not len(columns):
        return Borders(np.zeros(0, np.int64), np.zeros(0, np.int64), [])
    _, last = columns.outermost(columns.mask)
    lengths = columns.lengths[columns.lengths > 0]
    own = np.where(last >= 0, columns.tokens[last], -1)
    here = np.flatnonzero(columns.tokens == np.repeat(own, lengths))
    ends = last[np.searchsorted(columns.ends[columns.lengths > 0], here, side="right")]
    places = here[here < ends] + 1
    # Behind the last of several in a row: a run of one id is a border once.
    places = places[columns.tokens[places] != columns.tokens[places - 1]]
    names, kinds, counts = np.unique(
        columns.tokens[places - 1], return_inverse=True, return_counts=True
    )
    kept = np.argsort(-counts, kind="stable")[:KINDS]
    rank = np.full(len(names), -1)
    rank[kept] = np.arange(len(kept))
    chosen = rank[kinds] >= 0
    return Borders(places[chosen], rank[kinds][chosen], names[kept].tolist())


@np.errstate(over="ignore", invalid="ignore")
def _edges(
    columns: Columns,
    question: Question,
    places: NDArray[np.int64],
    kinds: NDArray[np.int64],
    count: int,
) -> list[Edge]:
    """The sums over the tokens at these places, of each of so many kinds."""
    p, q = (columns.log_probs[role][places].astype(np.float64) for role in (question.p, question.q))
    told = columns.mask[places] & is_number(p) & is_number(q)
    places, kinds, log_r = places[told], kinds[told], q[told] - p[told]
    squares = np.minimum(log_r * log_r, CUT)
    terms = (squares, squares * squares, -log_r, k3(log_r))
    tokens = np.bincount(kinds, minlength=count)
    sums = [np.bincount(kinds, term, minlength=count) for term in terms]
    first = np.full(count, len(columns))
    np.minimum.at(first, kinds, places)
    return [
        Edge(
            tokens=int(tokens[i]),
            squares=float(sums[0][i]),
            fourths=float(sums[1][i]),
            k1=float(sums[2][i]),
            k3=float(sums[3][i]),
            first=columns.place(int(first[i])) if tokens[i] else None,
        )
        for i in range(count)
    ]
