"""By what a coefficient is multiplied after a KL was read: the two rules that trainers have."""

from __future__ import annotations

from dataclasses import dataclass

from kullback.control.reading import above_zero


@dataclass(frozen=True, slots=True)
class ProportionalRule:
    """Multiply by the relative error of the KL, clipped, over a horizon.

        factor = 1 + clip(KL / target − 1, ±clip) · n / horizon

    The rule of Ziegler et al. 2019, with their clip; verl and OpenRLHF have it. The size of an
    error beyond the clip is lost, so that a negative reading counts as any KL below 0.8 targets
    does. The unit of the target is that of the KL that is fed: that of the paper is of a sequence,
    and some trainers feed a mean over tokens.

    Args:
        horizon: In how many of what ``n`` counts the coefficient would follow the error once, above
            0. With n = 1 it counts updates.
        clip: The largest relative error that counts, above 0.

    Raises:
        ValueError: The horizon or the clip is no finite number above 0.

    Example:
        >>> rule = ProportionalRule(horizon=10_000)
        >>> [rule.factor(kl, target=6.0, n=500) for kl in (-3.0, 0.05, 6.0, 6.6, 60.0)]
        [0.99, 0.99, 1.0, 1.005, 1.01]
    """

    horizon: float
    clip: float = 0.2

    def __post_init__(self) -> None:
        above_zero("horizon", self.horizon)
        above_zero("clip", self.clip)

    def side(self, kl: float, *, target: float) -> int:
        """1 where the KL is above the target by the clip or more, −1 where below it, else 0.

        Args:
            kl: The reading, in the unit of the target.
            target: Where the KL shall be.
        """
        error = self._error(kl, target)
        return (error == self.clip) - (error == -self.clip)

    def factor(self, kl: float, *, target: float, n: float = 1) -> float:
        """What the coefficient is multiplied by.

        Args:
            kl: The reading, in the unit of the target.
            target: Where the KL shall be.
            n: What happened since the last update, in the unit of the horizon.

        Raises:
            ValueError: n is no finite number above 0, or so large that a factor could be 0 or less.
        """
        above_zero("n", n)
        if n * self.clip >= self.horizon:
            raise ValueError(
                f"n={n:g} with a clip of {self.clip:g} may multiply the coefficient by 0 or less: "
                f"take a horizon far above {n * self.clip:g}, not {self.horizon:g}"
            )
        return 1 + self._error(kl, target) * n / self.horizon

    def _error(self, kl: float, target: float) -> float:
        return min(max(kl / target - 1, -self.clip), self.clip)


@dataclass(frozen=True, slots=True)
class BandRule:
    """Leave the coefficient in a band around the target, and multiply it by a constant outside.

        factor = up if KL > above · target;  down if KL < below · target;  else 1

    The constants are RLlib's if none are given. The rule of the PPO paper (Schulman et al. 2017)
    is ``BandRule(above=1.5, below=1 / 1.5, up=2, down=0.5)``. Both were made for the KL of one
    update, which answers at once; set on the KL to a reference they leap before the policy has
    answered, and swing. The size of a reading is lost: a negative one is a reason to go down.

    Args:
        above: The upper end of the band, in targets, 1 or more.
        below: Its lower end, in targets, above 0 and at most 1.
        up: What a KL above the band multiplies by, above 1.
        down: What a KL below the band multiplies by, between 0 and 1.

    Raises:
        ValueError: The band does not hold the target, or a factor goes the wrong way.

    Example:
        >>> rule = BandRule()
        >>> [rule.factor(kl, target=0.01) for kl in (-0.1, 0.004, 0.006, 0.019, 0.021)]
        [0.5, 0.5, 1.0, 1.0, 1.5]
    """

    above: float = 2.0
    below: float = 0.5
    up: float = 1.5
    down: float = 0.5

    def __post_init__(self) -> None:
        for name in ("above", "below", "up", "down"):
            above_zero(name, getattr(self, name))
        if not self.below <= 1 <= self.above:
            raise ValueError(
                f"a band from {self.below:g} to {self.above:g} targets does not hold the target"
            )
        if not self.down < 1 < self.up:
            raise ValueError(
                f"up={self.up:g} must raise the coefficient and down={self.down:g} lower it"
            )

    def side(self, kl: float, *, target: float) -> int:
        """1 where the KL is above the band, −1 where below it, else 0.

        Args:
            kl: The reading, in the unit of the target.
            target: Where the KL shall be.
        """
        return (kl > self.above * target) - (kl < self.below * target)

    def factor(self, kl: float, *, target: float, n: float = 1) -> float:
        """What the coefficient is multiplied by.

        Args:
            kl: The reading, in the unit of the target.
            target: Where the KL shall be.
            n: What happened since the last update; this rule does not ask.
        """
        del n
        return (1.0, self.up, self.down)[self.side(kl, target=target)]
