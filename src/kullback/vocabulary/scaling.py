"""From the numbers that a head gives to logits: soft cap and temperature, into float32 at least."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from kullback.arrays import at_least_float32, namespace


class Scaling(NamedTuple):
    """What stands between a head and the softmax; the same for both sides.

    Attributes:
        temperature: what logits are divided by, last.
        soft_cap: logits become cap * tanh(logits / cap) first, as in Gemma 2; None for none.
    """

    temperature: float = 1.0
    soft_cap: float | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether logits stay as they are."""
        return self.temperature == 1.0 and self.soft_cap is None

    def of(self, logits: Any) -> Any:
        """Scaled logits of any of the three libraries, as a new array."""
        xp = namespace(logits)
        z = at_least_float32(logits, xp)
        if self.soft_cap is not None:
            z = xp.tanh(z / self.soft_cap) * self.soft_cap
        return z / self.temperature

    def in_place(self, z: Any) -> Any:
        """Scale z, of torch and in float32 at least."""
        if self.soft_cap is not None:
            z.div_(self.soft_cap).tanh_().mul_(self.soft_cap)
        return z if self.temperature == 1.0 else z.div_(self.temperature)

    def slope(self, z: Any) -> Any:
        """The derivative of scaled logits z in the numbers that the head gave, as factors."""
        if self.soft_cap is None:
            return 1.0 / self.temperature
        capped = z * (self.temperature / self.soft_cap)
        return capped.square_().neg_().add_(1.0).div_(self.temperature)


def scaling(temperature: float, soft_cap: float | None) -> Scaling:
    """A `Scaling` of numbers that make sense.

    Raises:
        ValueError: for a temperature or a cap that is not a positive number.

    Example:
        >>> scaling(0.0, None)
        Traceback (most recent call last):
        ValueError: temperature is 0.0, expected a number above 0; ...
    """
    if not (isfinite(temperature) and temperature > 0):
        raise ValueError(
            f"temperature is {temperature}, expected a number above 0; greedy sampling has no KL"
        )
    if soft_cap is not None and not (isfinite(soft_cap) and soft_cap > 0):
        raise ValueError(
            f"soft_cap is {soft_cap}, expected a number above 0; pass None for logits without a cap"
        )
    return Scaling(float(temperature), None if soft_cap is None else float(soft_cap))
