"""Rows on their way from a file to columns: which column is which part, and some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.layout import CUTS, PER_TOKEN, Held, depth_in, family
from kullback.dumps.ragged import end_to_end, part


@dataclass(frozen=True, slots=True)
class Use:
    """A column of a file, taken as a part of the dump.

    Args:
        part: Which part.
        column: Its name in the file.
        held: What it holds.
        grain: What a row of the file is: a ``sequence``, a ``batch`` or a ``token``.
    """

    part: str
    column: str
    held: Held
    grain: str = "sequence"

    @property
    def family(self) -> str:
        """The family of the part."""
        return family(self.part)

    @property
    def depth(self) -> int:
        """How deep the lists of the part nest, an outer list of one entry left out."""
        depth = depth_in(self.part, self.held, self.grain)
        assert depth is not None, f"{self.column} cannot be {self.part}"
        return depth

    @property
    def wrapped(self) -> bool:
        """Whether each value stands in a list of one."""
        return self.grain == "sequence" and self.held.depth > self.depth

    @property
    def kept(self) -> str:
        """How a reader hands the column over.

        ``lists``: ``Ragged``. ``values``: a list with one Python value per row. Where a row is a
        token, ``flat``: an array, or whatever holds one entry per token; ``runs``: ``Runs``.
        """
        if self.grain == "token":
            return "flat" if self.family in (*PER_TOKEN, "position") else "runs"
        if self.grain == "batch" and self.family not in PER_TOKEN:
            ids = self.family == "prompt" and self.held.leaf == "number"
            return "lists" if ids or self.family in CUTS else "values"
        return "lists" if self.depth else "values"


class Fault(NamedTuple):
    """A row of a file that could not be used, or one sequence of a packed row, and why."""

    row: int
    reason: str
    within: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of one file.

    Args:
        uses: Which column is which part.
        values: What each of them holds, as ``Use.kept`` says.
        rows: The row numbers in the file.
        faults: The rows that cannot be used; they are not among ``rows``.
        unused: Columns that turned up on the way, with the reason why they are not used.
        within: For packed rows, which sequence of its row each one is.
        numbers: Which sequence of the file each one is, if that is not its row.
    """

    uses: Sequence[Use]
    values: Sequence[Any]
    rows: NDArray[np.int64]
    faults: Sequence[Fault] = ()
    unused: dict[str, str] = field(default_factory=dict)
    within: NDArray[np.int64] | None = None
    numbers: NDArray[np.int64] | None = None

    def without(self, faults: dict[int, str]) -> Batch:
        """The batch without the rows at these indices."""
        if not faults:
            return self
        chosen = np.ones(len(self.rows), dtype=np.bool_)
        chosen[list(faults)] = False
        values = [
            [one for one, keep in zip(value, chosen, strict=True) if keep]
            if isinstance(value, list)
            else value.keep(chosen)
            for value in self.values
        ]
        named = [
            Fault(int(self.rows[i]), why, None if self.within is None else int(self.within[i]))
            for i, why in faults.items()
        ]
        rows, within, numbers = (None if one is None else one[chosen] for one in self._places)
        assert rows is not None
        return Batch(self.uses, values, rows, [*self.faults, *named], self.unused, within, numbers)

    def part(self, first: int, last: int, faults: Sequence[Fault]) -> Batch:
        """The rows from ``first`` up to ``last``, and these of the faults."""
        values = [part(value, first, last) for value in self.values]
        rows, within, numbers = (None if p is None else p[first:last] for p in self._places)
        assert rows is not None
        return Batch(self.uses, values, rows, faults, self.unused, within, numbers)

    @property
    def _places(self) -> tuple[NDArray[np.int64] | None, ...]:
        return self.rows, self.within, self.numbers

    @classmethod
    def end_to_end(cls, pieces: Sequence[Batch]) -> Batch:
        """The rows of several batches of one file, one after another."""
        if len(pieces) == 1:
            return pieces[0]
        places = zip(*(piece._places for piece in pieces), strict=True)
        rows, within, numbers = (None if p[0] is None else end_to_end(p) for p in places)
        assert rows is not None
        return cls(
            pieces[0].uses,
            [end_to_end(one) for one in zip(*(piece.values for piece in pieces), strict=True)],
            rows,
            [fault for piece in pieces for fault in piece.faults],
            {name: why for piece in pieces for name, why in piece.unused.items()},
            within,
            numbers,
        )
