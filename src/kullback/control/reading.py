"""What a loop tells a controller or a stop rule: one KL, and a target above 0."""

from __future__ import annotations

from math import inf, isfinite, isnan


def reading(kl: float) -> float:
    """The KL as a float; below 0 and +inf are readings, NaN and −inf are none.

    Args:
        kl: A number, or an array that holds one.

    Raises:
        ValueError: It is NaN or −inf: every comparison with NaN is false, so that a rule would
            look calm, and a product with it is NaN for good.
    """
    kl = float(kl)
    if isnan(kl) or kl == -inf:
        raise ValueError(
            f"a KL of {kl:g} is no reading: skip a batch that has no tokens, and look for the "
            "log-prob that is missing in any other"
        )
    return kl


def above_zero(name: str, value: float) -> None:
    """Refuse what is no finite number above 0.

    Args:
        name: What it is, as the caller called it.
        value: The number.

    Raises:
        ValueError: It is 0, negative, infinite or NaN.
    """
    if not (isfinite(value) and value > 0):
        raise ValueError(f"{name} {value:g} is no finite number above 0")
