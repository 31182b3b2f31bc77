"""Rows on their way from a file to columns: which column is which part, and some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.layout import Held, depth_in, family
from kullback.dumps.ragged import Ragged, end_to_end, part


@dataclass(frozen=True, slots=True)
class Use:
    """A column of a file, taken as a part of the dump."""

    part: str
    column: str
    held: Held

    @property
    def family(self) -> str:
        """The family of the part."""
        return family(self.part)

    @property
    def depth(self) -> int:
        """How deep the lists of the part nest, an outer list of one entry left out."""
        depth = depth_in(self.part, self.held)
        assert depth is not None, f"{self.column} cannot be {self.part}"
        return depth


class Fault(NamedTuple):
    """A row of a file that could not be used, and why."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of one file.

    Args:
        uses: Which column is which part.
        values: What each of them holds: ``Ragged`` lists, or a list with one value per row.
        rows: The row numbers in the file.
        faults: The rows that cannot be used; they are not among ``rows``.
        unused: Columns that turned up on the way, with the reason why they are not used.
    """

    uses: Sequence[Use]
    values: Sequence[Any]
    rows: NDArray[np.int64]
    faults: Sequence[Fault] = ()
    unused: dict[str, str] = field(default_factory=dict)

    def without(self, faults: dict[int, str]) -> Batch:
        """The batch without the rows at these indices."""
        if not faults:
            return self
        chosen = np.ones(len(self.rows), dtype=np.bool_)
        chosen[list(faults)] = False
        values = [
            value.keep(chosen)
            if isinstance(value, Ragged)
            else [one for one, keep in zip(value, chosen, strict=True) if keep]
            for value in self.values
        ]
        named = [Fault(int(self.rows[i]), reason) for i, reason in faults.items()]
        return replace(self, values=values, rows=self.rows[chosen], faults=[*self.faults, *named])

    def part(self, first: int, last: int, faults: Sequence[Fault]) -> Batch:
        """The rows from ``first`` up to ``last``, and these of the faults."""
        values = [part(value, first, last) for value in self.values]
        return replace(self, values=values, rows=self.rows[first:last], faults=faults)

    @classmethod
    def end_to_end(cls, pieces: Sequence[Batch]) -> Batch:
        """The rows of several batches of one file, one after another."""
        if len(pieces) == 1:
            return pieces[0]
        return cls(
            pieces[0].uses,
            [end_to_end(one) for one in zip(*(piece.values for piece in pieces), strict=True)],
            np.concatenate([piece.rows for piece in pieces]),
            [fault for piece in pieces for fault in piece.faults],
            {name: why for piece in pieces for name, why in piece.unused.items()},
        )
