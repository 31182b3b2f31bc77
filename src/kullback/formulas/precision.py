"""The precision a formula is computed in: that of its input, but float32 at least."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def at_least_float32(values: ArrayLike) -> NDArray[Any]:
    """Return `values` as a floating array: half precision as float32, integers as float64.

    A log-ratio of 0.01 has three correct digits in bfloat16 and its square none to spare; the
    formulas therefore never compute in half precision, nor round back to it.

    Args:
        values: numbers of any shape and dtype, Python numbers included.

    Returns:
        An array of the same shape; float32, float64 and wider inputs keep their dtype.

    Example:
        >>> at_least_float32(np.float16(0.5)).dtype, at_least_float32(1).dtype
        (dtype('float32'), dtype('float64'))
    """
    array = np.asarray(values)
    return array.astype(np.result_type(array.dtype, np.float32), copy=False)
