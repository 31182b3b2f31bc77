"""On which grid do values stand? Narrow formats and few decimals round, and that is noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import fits_bfloat16

GLANCE = 256  # values that are looked at first; hardly a column is on a grid
DECIMALS = {"1 decimal": 1} | {f"{digits} decimals": digits for digits in (2, 3, 4)}
# By format, the bits behind the leading one, and the least exponent with all of them.
FORMATS = {"bfloat16": (7, -126), "float16": (10, -14)}
GRIDS = (*FORMATS, *DECIMALS)


def grids_of(values: NDArray[Any]) -> dict[str, float]:
    """The grids on which all values stand, each with the sum of the squares of its spacing there.

    Rounding to a grid moves a value by anything up to half the spacing, so its error has the
    variance spacing²/12 where values are spread over more than one step.

    Example:
        >>> sorted(grids_of(np.array([-1.75])))
        ['2 decimals', '3 decimals', '4 decimals', 'bfloat16', 'float16']
        >>> grids_of(np.array([-1.2345, -0.1]))
        {'4 decimals': 2e-08}
    """
    fitting = [grid for grid in GRIDS if _fits(values[:GLANCE], grid) and _fits(values, grid)]
    return {grid: _squares(values, grid) for grid in fitting}


@np.errstate(over="ignore")
def _fits(values: NDArray[Any], grid: str) -> bool:
    if grid == "bfloat16":
        return fits_bfloat16(values)
    if grid == "float16":
        return bool((values.astype(np.float16).astype(values.dtype) == values).all())
    scale = 10.0 ** DECIMALS[grid]
    # The nearest number of the type in which the decimals were read, not the nearest of any.
    return bool((_decimal(values, scale) == values).all())


def _decimal(values: NDArray[Any], scale: float) -> NDArray[Any]:
    return (np.rint(values.astype(np.float64) * scale) / scale).astype(values.dtype)


def _squares(values: NDArray[Any], grid: str) -> float:
    if grid in DECIMALS:
        return len(values) * 100.0 ** -DECIMALS[grid]
    bits, least = FORMATS[grid]
    _, exponent = np.frexp(values.astype(np.float64))  # |x| = m · 2^exponent with ½ ≤ m < 1
    spacing = np.ldexp(1.0, np.maximum(exponent - 1, least) - bits)
    return float((spacing * spacing).sum())
