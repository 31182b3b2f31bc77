"""Rows on their way from a file to columns: which column is which part, and some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.layout import Held, depth_in, family
from kullback.dumps.ragged import Ragged

CHUNK_TOKENS = 2**17


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


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of one file.

    Args:
        uses: Which column is which part.
        values: What each of them holds: ``Ragged`` lists, or a list with one value per row.
        rows: The row numbers in the file.
        faults: Rows that could not be decoded, with the reason; they are not among ``rows``.
        unused: Columns that turned up on the way, with the reason why they are not used.
    """

    uses: Sequence[Use]
    values: Sequence[Any]
    rows: NDArray[np.int64]
    faults: dict[int, str]
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
        named = {int(self.rows[i]): reason for i, reason in faults.items()}
        return replace(self, values=values, rows=self.rows[chosen], faults=self.faults | named)


class Filling:
    """Where one chunk ends and the next begins; the same for every format and reader.

    A chunk closes before the row that would carry it over 2^17 tokens, so it holds at most that
    many, or one longer row. An empty row counts as one token, so that memory stays bounded.
    """

    def __init__(self) -> None:
        self.tokens = 0

    def closes_before(self, tokens: int) -> bool:
        """Count a row in; true if the chunk closes before it."""
        size = max(tokens, 1)
        full = self.tokens > 0 and self.tokens + size > CHUNK_TOKENS
        self.tokens = size if full else self.tokens + size
        return full
