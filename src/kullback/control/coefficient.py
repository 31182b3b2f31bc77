"""The coefficient of a KL penalty that follows a target, and whether it still can."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, inf, log
from sys import float_info
from typing import Literal

from kullback.control.coefficient_rules import BandRule, ProportionalRule
from kullback.control.reading import above_zero, reading

LARGEST = {"float32": (2 - 2.0**-23) * 2.0**127, "float64": float_info.max}


@dataclass(frozen=True, slots=True)
class AdaptiveCoefficient:
    """The coefficient of a KL penalty under a rule of released trainers; `update` gives the next.

        value ← value · rule.factor(KL, target, n)

    A rule only multiplies, so a target that the policy cannot reach sends the coefficient to
    infinity or to 0, and until then nothing looks wrong. What is counted beside the value shows
    it: ``saturated`` is how many updates the KL has stayed out of the rule's reach on one side. A
    coefficient that starts far from where it belongs does so at first; `updates_to_overflow` says
    how long it can go on. Nothing is clamped, and noise is not taken out: feed a mean of k1 over
    many tokens, in the unit of the target. It is a number to multiply with and has no gradient.
    Sources: Ziegler et al. 2019, Schulman et al. 2017, RLlib.

    Args:
        value: The coefficient, above 0.
        target: Where the KL shall be, above 0, in nats of the unit that is fed (per token or per
            sequence: they differ by the length).
        rule: `ProportionalRule` or `BandRule`.
        updates: Updates so far.
        negative: Readings below 0 so far.
        clipped: Readings so far whose size was lost, beyond the clip or outside the band.
        saturated: The last updates in a row that were clipped on one side; above 0 if they raised
            the coefficient, below 0 if they lowered it.

    Raises:
        ValueError: The coefficient or the target is no finite number above 0.
        TypeError: The rule is none of the two.

    Example:
        >>> beta = AdaptiveCoefficient(0.1, target=6.0, rule=ProportionalRule(horizon=10_000))
        >>> for kl in (-0.5, -0.2, -3.0, 0.05):
        ...     beta = beta.update(kl, n=512)
        >>> print(beta)
        0.09597 after 4 updates, 3 readings below 0, 4 clipped; lowered 4 times in a row
    """

    value: float
    target: float
    rule: ProportionalRule | BandRule
    updates: int = 0
    negative: int = 0
    clipped: int = 0
    saturated: int = 0

    def __post_init__(self) -> None:
        above_zero("coefficient", self.value)
        above_zero("target", self.target)
        if not isinstance(self.rule, ProportionalRule | BandRule):
            raise TypeError(f"rule {self.rule!r} is no ProportionalRule(…) and no BandRule(…)")

    def update(self, kl: float, n: float = 1) -> AdaptiveCoefficient:
        """The coefficient after one reading of the KL.

        Args:
            kl: The KL, in the unit of the target. Below 0 and +inf are readings that count.
            n: What happened since the last update, in the unit of the rule's horizon: its
                episodes or steps. The rule with a band does not ask.

        Returns:
            The next state; this one stays as it is.

        Raises:
            ValueError: The KL is NaN or −inf; n is no number above 0 or too large for the horizon;
                or the coefficient leaves what a float64 can hold.
        """
        kl = reading(kl)
        side = self.rule.side(kl, target=self.target)
        value = self.value * self.rule.factor(kl, target=self.target, n=n)
        if not 0 < value < inf:
            raise ValueError(
                f"a coefficient of {value:g}: the KL does not come near the target of "
                f"{self.target:g} whatever the penalty does; give another target, or end it before"
            )
        return replace(
            self,
            value=value,
            updates=self.updates + 1,
            negative=self.negative + (kl < 0),
            clipped=self.clipped + abs(side),
            saturated=side + (self.saturated if side * self.saturated > 0 else 0) if side else 0,
        )

    def updates_to_overflow(
        self, dtype: Literal["float32", "float64"] = "float32", *, n: float = 1
    ) -> float:
        """After how many updates more it is infinite if the KL stays above the rule's reach.

            ⌊log(largest / value) / log(largest factor)⌋ + 1

        Args:
            dtype: The format that the trainer keeps it in.
            n: What happens between two updates, in the unit of the rule's horizon.

        Returns:
            A whole number; inf where the factor is 1 to the last bit.

        Raises:
            ValueError: There is no such format here, or n is none for the rule.
        """
        if dtype not in LARGEST:
            raise ValueError(f"dtype {dtype!r} is none of {', '.join(LARGEST)}")
        growth = log(self.rule.factor(inf, target=self.target, n=n))
        room = log(LARGEST[dtype]) - log(self.value)
        return max(floor(room / growth) + 1, 0) if growth else inf

    def __str__(self) -> str:
        way = "raised" if self.saturated > 0 else "lowered"
        run = f"; {way} {abs(self.saturated)} times in a row" if self.saturated else ""
        return (
            f"{self.value:.4g} after {self.updates} updates, {self.negative} readings below 0, "
            f"{self.clipped} clipped{run}"
        )
