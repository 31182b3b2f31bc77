"""Do sequences begin or end in a run of one constant? Then padding may be counted as tokens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place
from kullback.levels import segment_sums

SHORTEST = 2  # a single certain token at the end is an honest end of text
NAMED = 20  # places kept by name; the rest are counted
KINDS = 100  # kinds of runs kept apart; honest data have none, padding one or two

Kind = tuple[str, tuple[float, ...], int | None]  # side, log-prob per role, id (None: unknown)


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one kind. ``a + b`` counts both.

    Args:
        sequences: Sequences that begin or end in one.
        tokens: Tokens of all of them.
        shortest: The length of the shortest of these sequences, run included.
        places: Where the first of them begin.
    """

    sequences: int
    tokens: int
    shortest: int
    places: tuple[Place, ...]

    def __add__(self, other: Runs) -> Runs:
        return Runs(
            self.sequences + other.sequences,
            self.tokens + other.tokens,
            min(self.shortest, other.shortest),
            (self.places + other.places)[:NAMED],
        )


@dataclass(frozen=True, slots=True)
class PaddingState:
    """Runs of two tokens or more, at an end of a sequence, of one log-prob per role.

    Args:
        sequences: All sequences.
        longest: The length of the longest.
        identified: Whether token ids are logged.
        runs: The runs, by side (``begin`` or ``end``), by the log-prob of each role, and by id.
    """

    sequences: int
    longest: int
    identified: bool
    runs: dict[Kind, Runs]

    @classmethod
    def of(cls, columns: Columns) -> PaddingState:
        """The runs of one batch."""
        filled = columns.lengths > 0
        lengths = columns.lengths[filled]
        edges = {"begin": columns.starts[filled], "end": columns.ends[filled] - 1}
        runs: dict[Kind, Runs] = {}
        for side, edge in edges.items():
            repeated = _repeated(columns, side, edge)[filled]
            for i in np.flatnonzero(repeated >= SHORTEST):
                token, length = int(edge[i]), int(repeated[i])
                start = token if side == "begin" else token - length + 1
                values = tuple(float(v[token]) for v in columns.log_probs.values())
                identity = None if columns.tokens is None else int(columns.tokens[token])
                one = Runs(1, length, int(lengths[i]), (columns.place(start),))
                kind = (side, values, identity)
                runs[kind] = runs[kind] + one if kind in runs else one
        longest = int(columns.lengths.max(initial=0))
        return cls(len(columns.lengths), longest, columns.tokens is not None, _commonest(runs))

    def __add__(self, other: PaddingState) -> PaddingState:
        both = {k: self.runs[k] + other.runs[k] for k in self.runs.keys() & other.runs.keys()}
        return PaddingState(
            self.sequences + other.sequences,
            max(self.longest, other.longest),
            self.identified or other.identified,
            _commonest(self.runs | other.runs | both),
        )


def _commonest(runs: dict[Kind, Runs]) -> dict[Kind, Runs]:
    counts = Counter({kind: one.sequences for kind, one in runs.items()})
    return {kind: runs[kind] for kind, _ in counts.most_common(KINDS)}


def _repeated(columns: Columns, side: str, edge: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many tokens of each sequence repeat, inside the mask, what stands at its edge.

    ``edge`` leaves out the empty sequences; the result has a 0 for them.
    """
    lengths = columns.lengths[columns.lengths > 0]
    other = ~columns.mask
    ids = () if columns.tokens is None else (columns.tokens,)
    for values in (*columns.log_probs.values(), *ids):
        other = other | (values != np.repeat(values[edge], lengths))
    before, behind = columns.outside(other)
    # As numbers: flags would be joined by "or".
    return segment_sums((before if side == "begin" else behind).astype(float), columns.lengths)
