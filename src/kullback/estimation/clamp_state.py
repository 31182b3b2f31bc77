"""What the usual clamps of a trainer would do to the log-ratios of one question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns
from kullback.estimation.keyed import added
from kullback.estimation.ratios import Ratios
from kullback.formulas.k_family import k1, k3

_FORMULAS = {"k1": k1, "k3": k3}
NEAR = 0.69  # nats: up to there no band drops anything
FAR_ABOVE, FAR_BELOW = 2.6, 9.9  # nats: up to there no clamp at 10 changes anything


@dataclass(frozen=True, slots=True)
class Clamp:
    """One clamp: of log r before a formula, of its value after it, or a band outside of which 0.

    Args:
        form: ``k1`` or ``k3``.
        low: What log r is clamped at from below, or the lower end of the band.
        high: The same from above.
        value: What the value is clamped at, on either side.
        drops: Whether what lies outside counts as 0.
    """

    form: str
    low: float = -np.inf
    high: float = np.inf
    value: float = np.inf
    drops: bool = False

    def changed(self, log_r: NDArray[np.float64]) -> tuple[int, float]:
        """How many of these values it changes, and what it adds to the sum of its formula."""
        if not len(log_r):
            return 0, 0.0
        formula = _FORMULAS[self.form]
        if self.drops:
            outside = log_r[(log_r < self.low) | (log_r > self.high)]
            return len(outside), -float(formula(outside).sum())
        free = formula(log_r)
        cut = np.clip(formula(np.clip(log_r, self.low, self.high)), -self.value, self.value)
        return int(np.count_nonzero(cut != free)), float((cut - free).sum())


CLAMPS = {
    "k3_within_20_10": Clamp("k3", -20.0, 20.0, 10.0),
    "k3_10": Clamp("k3", value=10.0),
    "k3_above_minus_10_10": Clamp("k3", low=-10.0, value=10.0),
    "k1_10": Clamp("k1", value=10.0),
    "ratio_0.5_5": Clamp("k3", float(np.log(0.5)), float(np.log(5.0)), drops=True),
}


@dataclass(frozen=True, slots=True)
class End:
    """The smallest or the largest log r. ``a + b`` is that of both.

    Args:
        value: It; 0 if there is none beyond.
        ties: How many stand there, as far as rounding lets one tell.
    """

    value: float
    ties: int

    def __add__(self, other: End) -> End:
        far, near = (self, other) if abs(self.value) >= abs(other.value) else (other, self)
        alike = abs(far.value - near.value) <= _rounding(far.value)
        return End(far.value, far.ties + near.ties * alike)


def _rounding(end: float) -> float:
    """What float32 log-probs can make of one log-ratio."""
    return 4e-6 + 1e-5 * abs(end)


def _ends(values: NDArray[np.float64]) -> tuple[End, End]:
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    below = int(np.count_nonzero(values <= low + _rounding(low))) if low else 0
    above = int(np.count_nonzero(values >= high - _rounding(high))) if high else 0
    return End(low, below), End(high, above)


@dataclass(frozen=True, slots=True)
class ClampState:
    """What each of ``CLAMPS`` changes. ``a + b`` is that of both.

    Args:
        tokens: Counted tokens of which both log-probs are there.
        changed: How many of them each clamp changes.
        added: What it adds to the sum of its formula over them.
        low: The smallest log r.
        high: The largest.
    """

    tokens: int
    changed: dict[str, int]
    added: dict[str, float]
    low: End
    high: End

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(cls, columns: Columns, ratios: Ratios) -> ClampState:
        """The sums of one batch."""
        told = ratios.there & columns.mask
        log_r = ratios.log_r if told.all() else ratios.log_r[told]
        low, high = _ends(log_r)
        near = low.value > -NEAR and high.value < NEAR
        far = log_r[:0] if near else log_r[np.abs(log_r) > NEAR]
        farther = far[(far < -FAR_BELOW) | (far > FAR_ABOVE)]
        found = {
            name: clamp.changed(far if clamp.drops else farther) for name, clamp in CLAMPS.items()
        }
        return cls(
            len(log_r),
            {name: count for name, (count, _) in found.items()},
            {name: more for name, (_, more) in found.items()},
            low,
            high,
        )

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: ClampState) -> ClampState:
        return ClampState(
            self.tokens + other.tokens,
            added(self.changed, other.changed),
            added(self.added, other.added),
            self.low + other.low,
            self.high + other.high,
        )
