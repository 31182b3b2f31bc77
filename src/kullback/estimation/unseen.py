"""What was never sampled, and how much of a KL it can hide."""

from __future__ import annotations

import math

MOST = 1 / math.e  # of the mass: beyond, x log(1/x) falls again, and no more can hide


def unseen_mass(units: float, alpha: float) -> float:
    """A bound on p's mass of {r > the largest r sampled}, that holds with probability 1 − alpha.

        log(1/alpha) / units

    since (1 − mass)^units is the chance that none of it was sampled: at alpha = 0.05 the rule of
    three. It bounds no other unsampled mass; of that p can have most.

    Args:
        units: Independent samples.
        alpha: The chance to be wrong.

    Returns:
        At most 1/e, from where on more mass hides no more.

    Example:
        >>> round(unseen_mass(1000, 0.05), 4)
        0.003
    """
    return min(-math.log(alpha) / units, MOST)


def allowance(mass: float, lam: float) -> float:
    """The most, in nats, by which k_λ over the sampled outcomes can exceed the KL.

        mass (log(1/λ) − 1 + λ)            if mass < λ < 1
        mass log(1/mass) − λ (1 − mass)    if λ ≤ mass
        0                                  if λ ≥ 1

    Outcomes with p-mass m and q-mass c add at least −m log(c/m) + λ(c − m) to the mean of k_λ,
    which is least at c = m/λ, or at 1, since c is a probability. With λ = 1 (k3) nothing can hide
    on this side; k1 alone, λ = 0, can hide m log(1/m).

    Args:
        mass: What p may have of outcomes with a larger r than all that were sampled.
        lam: The coefficient of r − 1.

    Example:
        >>> round(allowance(0.003, 0.0), 4), round(allowance(0.003, 0.5), 5), allowance(0.003, 1.0)
        (0.0174, 0.00058, 0.0)
    """
    if lam >= 1:
        return 0.0
    if lam > mass:
        return mass * (-math.log(lam) - 1 + lam)
    return max(-mass * math.log(mass) - max(lam, 0.0) * (1 - mass), 0.0)
