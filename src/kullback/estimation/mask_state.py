"""What the mask leaves out: rows, stretches within them, and the token that ends them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place
from kullback.estimation.keyed import added
from kullback.estimation.role_sums import Logged, scored
from kullback.levels import segment_sums

KINDS = 20  # last ids kept apart, the commonest


@dataclass(frozen=True, slots=True)
class Ending:
    """The sequences that end in one id, or before it. ``a + b`` counts both.

    Args:
        sequences: How many there are.
        inside: Those in which the id is counted before as well: it does not end them.
        longest: Most counted tokens of one.
        at_longest: Those with as many.
        furthest: The last place at which one ends, masked tokens counted too.
        at_furthest: Those that end there.
    """

    sequences: int
    inside: int
    longest: int
    at_longest: int
    furthest: int
    at_furthest: int

    def __add__(self, other: Ending) -> Ending:
        return Ending(
            self.sequences + other.sequences,
            self.inside + other.inside,
            *_top((self.longest, self.at_longest), (other.longest, other.at_longest)),
            *_top((self.furthest, self.at_furthest), (other.furthest, other.at_furthest)),
        )


def _top(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The larger value, and how many have it."""
    return (a[0], a[1] + b[1]) if a[0] == b[0] else max(a, b)


@dataclass(frozen=True, slots=True)
class MaskState:
    """What is counted of each sequence, and what is not. ``a + b`` counts both.

    Args:
        total: Sequences with a counted token, whatever they end in.
        empty: Sequences that have tokens, of which none is counted.
        holed: Sequences with uncounted tokens between counted ones.
        holes: These tokens.
        endings: Sequences by the id of their last counted token; nothing without ids.
        behind: Sequences by the id right behind that, where it is another one and not counted.
        left: By role, the count and sum of the log-probs of those ids, if it has some.
        first: Where the first of these stands.
    """

    total: Ending
    empty: int
    holed: int
    holes: int
    endings: dict[int, Ending]
    behind: dict[int, Ending]
    left: dict[str, Logged]
    first: Place | None

    @classmethod
    def of(cls, columns: Columns) -> MaskState:
        """The counts of one batch."""
        counted = segment_sums(columns.mask.astype(float), columns.lengths).astype(np.int64)
        filled = columns.lengths > 0
        first, last = columns.outermost(columns.mask)
        told = counted[filled] > 0
        holes = np.where(told, last - first + 1 - counted[filled], 0)
        last, counted, starts = last[told], counted[filled][told], columns.starts[filled][told]
        open_ended = _open_ended(columns, last, columns.ends[filled][told])
        behind = last[open_ended] + 1
        sizes = np.stack([counted, last - starts + 1])
        endings: dict[int, Ending] = {}
        after: dict[int, Ending] = {}
        if columns.tokens is not None:
            endings = _filed(columns.tokens[last], sizes, _again(columns, last))
            none = np.zeros(len(behind), dtype=bool)
            after = _filed(columns.tokens[behind], sizes[:, open_ended], none)
        return cls(
            total=_ending(sizes, np.zeros(len(last), dtype=bool)),
            empty=int((~told).sum()),
            holed=int((holes > 0).sum()),
            holes=int(holes.sum()),
            endings=endings,
            behind=after,
            left={role: scored(values[behind]) for role, values in columns.log_probs.items()},
            first=columns.place(int(behind[0])) if len(behind) else None,
        )

    @property
    def sequences(self) -> int:
        """Sequences with a counted token."""
        return self.total.sequences

    def __add__(self, other: MaskState) -> MaskState:
        return replace(
            self,
            total=self.total + other.total,
            empty=self.empty + other.empty,
            holed=self.holed + other.holed,
            holes=self.holes + other.holes,
            endings=_most(added(self.endings, other.endings)),
            behind=_most(added(self.behind, other.behind)),
            left=added(self.left, other.left),
            first=self.first or other.first,
        )


def _most(endings: dict[int, Ending]) -> dict[int, Ending]:
    kept = sorted(endings.items(), key=lambda item: (-item[1].sequences, item[0]))[:KINDS]
    return dict(kept)


def _open_ended(
    columns: Columns, last: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The sequences in which another id stands, uncounted, behind the last counted token."""
    followed = last + 1 < ends
    if columns.tokens is None:
        return np.zeros(len(last), dtype=bool)
    behind = columns.tokens[np.where(followed, last + 1, last)]
    return followed & (behind != columns.tokens[last])


def _again(columns: Columns, last: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The sequences, of those with these last counted tokens, that count its id before as well."""
    assert columns.tokens is not None
    sequence = np.searchsorted(columns.ends, last, side="right")
    own = np.full(len(columns.lengths), -1, dtype=np.int64)
    own[sequence] = columns.tokens[last]
    again = columns.mask & (columns.tokens == np.repeat(own, columns.lengths))
    again[last] = False
    return segment_sums(again.astype(float), columns.lengths)[sequence] > 0


def _filed(
    ids: NDArray[np.int64], sizes: NDArray[np.int64], inside: NDArray[np.bool_]
) -> dict[int, Ending]:
    """Sequences by these ids; ``sizes`` are their counted tokens and where they end."""
    names, counts = np.unique(ids, return_counts=True)
    found: dict[int, Ending] = {}
    for name in names[np.argsort(-counts, kind="stable")[:KINDS]].tolist():
        group = ids == name
        found[name] = _ending(sizes[:, group], inside[group])
    return found


def _ending(sizes: NDArray[np.int64], inside: NDArray[np.bool_]) -> Ending:
    longest, furthest = (int(one.max(initial=0)) for one in sizes)
    return Ending(
        len(inside),
        int(inside.sum()),
        longest,
        int((sizes[0] == longest).sum()),
        furthest,
        int((sizes[1] == furthest).sum()),
    )
