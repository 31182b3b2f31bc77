"""Do sequences begin or end in a run of one constant? Then padding may be counted as tokens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place

SHORTEST = 2  # a single certain token at the end is an honest end of text
NAMED = 20  # places kept by name; the rest are counted
KINDS = 100  # kinds of runs kept apart; honest data have none, padding one or two a role

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
        """Sequences that have one."""
        return self.shapes.total()

    @property
    def tokens(self) -> int:
        """Tokens of all of them."""
        return sum(length * count for (_, length), count in self.shapes.items())

    @property
    def widths(self) -> set[int]:
        """The lengths of the sequences, run included."""
        return {width for width, _ in self.shapes}


@dataclass(frozen=True, slots=True)
class PaddingState:
    """Runs of two tokens or more, at an end of a sequence, of one log-prob (and one id).

    Args:
        widths: Sequences by their length.
        runs: The runs, by side (``begin`` or ``end``), role, log-prob and id.
    """

    widths: Counter[int]
    runs: dict[Kind, Runs]

    @classmethod
    def of(cls, columns: Columns) -> PaddingState:
        """The runs of one batch."""
        filled = columns.lengths > 0
        widths = columns.lengths[filled]
        edges = {"begin": columns.starts[filled], "end": columns.ends[filled] - 1}
        runs: dict[Kind, Runs] = {}
        for side, edge in edges.items():
            for role, values in columns.log_probs.items():
                repeated = _repeated(columns, values, side, edge)
                for i in np.flatnonzero(repeated >= SHORTEST):
                    token, length = int(edge[i]), int(repeated[i])
                    start = token if side == "begin" else token - length + 1
                    identity = None if columns.tokens is None else int(columns.tokens[token])
                    one = Runs(Counter([(int(widths[i]), length)]), (columns.place(start),))
                    kind = (side, role, float(values[token]), identity)
                    runs[kind] = runs[kind] + one if kind in runs else one
        return cls(Counter(columns.lengths.tolist()), _commonest(runs))

    def __add__(self, other: PaddingState) -> PaddingState:
        both = {k: self.runs[k] + other.runs[k] for k in self.runs.keys() & other.runs.keys()}
        return PaddingState(self.widths + other.widths, _commonest(self.runs | other.runs | both))

    @property
    def sequences(self) -> int:
        """All sequences."""
        return self.widths.total()


def _commonest(runs: dict[Kind, Runs]) -> dict[Kind, Runs]:
    counts = Counter({kind: one.sequences for kind, one in runs.items()})
    return {kind: runs[kind] for kind, _ in counts.most_common(KINDS)}


def _repeated(
    columns: Columns, values: NDArray[np.float64], side: str, edge: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many tokens of each sequence repeat, inside the mask, what stands at its edge.

    ``edge`` and the result leave out the empty sequences.
    """
    lengths = columns.lengths[columns.lengths > 0]
    other = ~columns.mask | (values != np.repeat(values[edge], lengths))
    if columns.tokens is not None:
        other = other | (columns.tokens != np.repeat(columns.tokens[edge], lengths))
    first, last = columns.outermost(other)
    # Where nothing else stands, all of it does.
    return np.minimum(first - edge if side == "begin" else edge - last, lengths)
