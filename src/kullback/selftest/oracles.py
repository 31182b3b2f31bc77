"""Numbers computed with fifty and more digits, of which 34 are kept: what formulas are held to."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray


@cache
def oracle(name: str) -> Any:
    """One family of them, as decimals in text.

    Example:
        >>> oracle("g_gaussians")["univariate"][0]["KL_pq"]
        '0.005000000000000000000000000000000000'
    """
    text = files("kullback.selftest").joinpath("oracles.json").read_text(encoding="utf-8")
    return json.loads(text)[name]


def floats(values: Any) -> NDArray[np.float64]:
    """The decimals as an array."""
    return np.asarray(values, dtype=np.float64)
