"""How many log-probs a role has at some places, and their sum; by role, they add."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import is_sentinel

Logged = tuple[int, float]


def logged(values: NDArray[Any]) -> Logged:
    """The count and sum of those that were logged."""
    kept = values[np.isfinite(values) & ~is_sentinel(values)]
    return len(kept), float(kept.sum(dtype=np.float64))


def scored(values: NDArray[Any]) -> Logged:
    """The same of those that are not 0: what nobody computed is often that."""
    return logged(values[values != 0])


def added(a: dict[str, Logged], b: dict[str, Logged]) -> dict[str, Logged]:
    """The entries of either side, and sums where both have one."""
    both = {role: (a[role][0] + b[role][0], a[role][1] + b[role][1]) for role in a if role in b}
    return b | a | both
