"""What one role's log-probs look like before anything is computed from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place, is_number, is_sentinel
from kullback.estimation.grids import grids_of


@dataclass(frozen=True, slots=True)
class ColumnState:
    """Counts over the tokens of a role that are inside the mask. ``a + b`` counts both.

    Args:
        tokens: Tokens inside the mask.
        positive: Log-probs above 0, which no probability has.
        sentinel: Log-probs of −9999.
        nan: Log-probs that were not logged.
        nan_trailing: Those of them behind the last other one of their sequence.
        negative_infinite: Log-probs of −inf.
        low: The smallest finite log-prob, sentinels apart.
        lowest: How many of them are that small.
        high: The largest.
        rises: Tokens whose log-prob is above that of the token before, in the same sequence.
        falls: Those whose log-prob is below it.
        total: Sum of the finite ones. Where all of them are, the difference of two roles' totals is
            the log of their likelihood ratio.
        size: Sum of their sizes |log p|.
        squares: Sum of their squares.
        grids: The grids on which all of them stand (a narrow format, few decimals), each with the
            sum of the squares of its spacing there.
        discrete: Whether the actions are tokens; a density may have a logarithm above 0.
        dtype: The type they were read in.
        first: The first place of each fault that was seen, by fault.
    """

    tokens: int
    positive: int
    sentinel: int
    nan: int
    nan_trailing: int
    negative_infinite: int
    low: float
    lowest: int
    high: float
    rises: int
    falls: int
    total: float
    size: float
    squares: float
    grids: dict[str, float]
    discrete: bool
    dtype: str
    first: dict[str, Place]

    @classmethod
    @np.errstate(over="ignore")  # of the sizes and squares, where there are log-probs of 1e308
    def of(cls, columns: Columns, role: str) -> ColumnState:
        """The counts of one batch."""
        values, inside = columns.log_probs[role], columns.mask
        faults = {
            "positive": inside & (values > 0),
            "sentinel": inside & is_sentinel(values),
            "nan": inside & np.isnan(values),
            "negative_infinite": inside & np.isneginf(values),
        }
        trailing = 0
        if faults["nan"].any():
            before, behind = columns.outside(inside & ~faults["nan"])
            trailing = int((faults["nan"] & behind & ~before).sum())
        plain = inside & is_number(values)
        finite = np.where(plain, values, 0.0)
        low = float(np.where(plain, values, np.inf).min(initial=np.inf))
        rises, falls = _steps(columns, values, plain)
        return cls(
            tokens=int(inside.sum()),
            nan_trailing=trailing,
            low=low,
            lowest=int(np.count_nonzero(plain & (values == low))),
            rises=rises,
            falls=falls,
            high=float(np.where(plain, values, -np.inf).max(initial=-np.inf)),
            total=float(finite.sum(dtype=np.float64)),
            size=float(np.abs(finite).sum(dtype=np.float64)),
            squares=float(np.square(finite, dtype=np.float64).sum()),
            grids=grids_of(values[plain]),
            discrete=columns.tokens is not None or columns.text is not None,
            dtype=str(values.dtype),
            first=columns.first_places(faults),
            **{name: int(flags.sum()) for name, flags in faults.items()},
        )

    def __add__(self, other: ColumnState) -> ColumnState:
        counted = (
            "tokens",
            "positive",
            "sentinel",
            "nan",
            "nan_trailing",
            "negative_infinite",
            "rises",
            "falls",
            "total",
            "size",
            "squares",
        )
        low = min(self.low, other.low)
        return replace(
            self,
            low=low,
            lowest=sum(one.lowest for one in (self, other) if one.low == low),
            high=max(self.high, other.high),
            grids={
                grid: squares + other.grids[grid]
                for grid, squares in self.grids.items()
                if grid in other.grids
            },
            discrete=self.discrete or other.discrete,
            dtype=self.dtype if self.dtype == other.dtype else "mixed",
            first=other.first | self.first,
            **{name: getattr(self, name) + getattr(other, name) for name in counted},
        )

    @property
    def bfloat16(self) -> bool:
        """Whether all finite log-probs are numbers that bfloat16 can hold."""
        return "bfloat16" in self.grids

    @property
    def grid(self) -> tuple[str, float]:
        """The coarsest grid on which all finite ones stand, and its root mean square spacing.

        Without a grid, an empty name and 0.
        """
        if not (self.grids and self.logged > 0):
            return "", 0.0
        name = max(self.grids, key=lambda grid: self.grids[grid])
        return name, (self.grids[name] / self.logged) ** 0.5

    @property
    def logged(self) -> int:
        """Log-probs that are there: no gap, no sentinel, no −inf."""
        return self.tokens - self.sentinel - self.nan - self.negative_infinite


def _steps(columns: Columns, values: NDArray[Any], plain: NDArray[np.bool_]) -> tuple[int, int]:
    """How often a log-prob is above, and below, the one before it in its sequence."""
    follows = plain[1:] & plain[:-1]
    starts = columns.starts[(columns.starts > 0) & (columns.starts < len(columns))]
    follows[starts - 1] = False
    with np.errstate(invalid="ignore"):  # of what is not plain
        above, below = values[1:] > values[:-1], values[1:] < values[:-1]
    return int(np.count_nonzero(above & follows)), int(np.count_nonzero(below & follows))
