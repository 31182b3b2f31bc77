"""Bins of numbers that merge: each value its own while they are few, then widths of 2^k."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 64  # cells of an axis
_NARROWEST, _WIDEST = -1074, 1023  # exponents of the powers of two that float64 has


def low_ends(values: NDArray[np.float64], width: int | None) -> NDArray[np.float64]:
    """The lower end of each value's bin of width 2^width; the value itself where there is none.

    Bins start at multiples of their width, so that a bin of any width is whole bins of half.

    Example:
        >>> low_ends(np.array([5.0, -1.0, 0.25]), 2).tolist()
        [4.0, -4.0, 0.0]
    """
    if width is None:
        return values
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(values, -width)
        floors = np.where((values < 0) & (scaled == 0), -1.0, np.floor(scaled))
        # From 2^52 on (and at infinity) a float is a multiple of the width already.
        return np.where(np.abs(scaled) >= 2.0**52, values, np.ldexp(floors, width))


def width_for(values: NDArray[np.float64], at_least: int | None = None) -> int | None:
    """The smallest width that leaves at most 64 bins, as an exponent; None: values as they are.

    Wider bins are never more, so the width of a whole is at least that of each part, and follows
    from the distinct values alone: not from their order, nor from how they were cut.

    Args:
        values: Values, or lower ends of bins of width ``at_least``; no NaN.
        at_least: The width that they have already.

    Example:
        >>> width_for(np.arange(64.0)), width_for(np.arange(65.0)), width_for(np.arange(1000) / 8)
        (None, 1, 1)
    """
    values = np.unique(values)
    if len(values) <= MOST:
        return at_least
    low, high = (_NARROWEST if at_least is None else at_least), _WIDEST
    while low < high:
        middle = (low + high) // 2
        if len(np.unique(low_ends(values, middle))) <= MOST:
            high = middle
        else:
            low = middle + 1
    return low


def powers_of_two(counts: NDArray[Any]) -> NDArray[np.float64]:
    """The lower end of the bin of each count among 0, 1, 2–3, 4–7, and so on.

    Example:
        >>> powers_of_two(np.array([0, 1, 3, 4, 1000])).tolist()
        [0.0, 1.0, 2.0, 4.0, 512.0]
    """
    exponents = np.frexp(counts.astype(np.float64))[1]
    return np.where(counts > 0, np.ldexp(1.0, exponents - 1), 0.0)
