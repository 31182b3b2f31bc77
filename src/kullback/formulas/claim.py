"""What a formula promises: its mean, its sign and its gradient, and on which conditions."""

from __future__ import annotations

from dataclasses import dataclass

Q_FIXED = "q was fixed before the sample was drawn"
BOTH_FIXED = "p and q were fixed before the sample was drawn"
TARGET_FIXED = "the target was fixed before the sample was drawn"
LAM_FIXED = "lam was fixed before the sample was drawn"
UNSELECTED = "no sample was selected on its outcome"
Q_INSIDE_P = "q puts no mass where p has none"
P_INSIDE_SAMPLER = "p puts no mass where the sampler has none"
Q_INSIDE_SAMPLER = "q puts no mass where the sampler has none"
TARGET_INSIDE_SAMPLER = "the target puts no mass where the sampler has none"


@dataclass(frozen=True, slots=True)
class Claim:
    """What the mean and the gradient of one sample formula are; proved in tests/laws.

    Attributes:
        unbiased_for: the quantity that the mean over the sampler's draws is equal to.
        sampler: who drew the sample, "p" or the third distribution "s".
        conditions: what has to be true for `unbiased_for` to hold.
        can_be_negative: whether one sample can give a negative value.
        expected_gradient: the quantity whose gradient the mean of the sample gradients is, when
            the parameters of p are differentiated through log_p only and the draw is not;
            "0" where that mean vanishes.
        mean_without_support: what the mean is when the conditions on the supports fail; None
            where there are none.
    """

    unbiased_for: str
    sampler: str
    conditions: tuple[str, ...]
    can_be_negative: bool
    expected_gradient: str
    mean_without_support: str | None = None
