"""How many log-probs a role has at some places, and their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import is_number


@dataclass(frozen=True, slots=True)
class Logged:
    """The log-probs of a role at some tokens. ``a + b`` is that of both.

    Args:
        count: How many there are.
        total: Their sum.
    """

    count: int
    total: float

    def __add__(self, other: Logged) -> Logged:
        return Logged(self.count + other.count, self.total + other.total)


def logged(values: NDArray[Any]) -> Logged:
    """The count and sum of those that were logged."""
    kept = values[is_number(values)]
    return Logged(len(kept), float(kept.sum(dtype=np.float64)))


def scored(values: NDArray[Any]) -> Logged:
    """The same of those that are not 0: what nobody computed is often that."""
    return logged(values[values != 0])
