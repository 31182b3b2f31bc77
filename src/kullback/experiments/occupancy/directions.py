"""Three ways of leaving the old policy, and what PPO's clip and a weight show of each.

All is per step and exact, over the discounted occupancy of the old policy unless it is said to be
the new one's: what an endless rollout would log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kullback as kb
from kullback.experiments.occupancy.measure import (
    OLD_RIGHT,
    Values,
    action_kl,
    actions,
    occupancy,
    old,
    shifted,
)

CLIP = 0.2  # PPO's ε
FAR = slice(14, None)
EVERYWHERE, FAR_END, ONE_CELL = "everywhere", "far end", "one cell"
# The cells in which a direction moves.
DIRECTIONS = {EVERYWHERE: slice(None), FAR_END: FAR, ONE_CELL: slice(0, 1)}


@dataclass(frozen=True, slots=True)
class Update:
    """A new policy and what is logged of it.

    Args:
        right: Its probability of going right, [cells].
    """

    right: Values

    @property
    def kl(self) -> float:
        """Mean of KL(old‖new) over the old policy's states: what a PPO run logs."""
        return float(occupancy(old()) @ action_kl(old(), self.right))

    @property
    def kl_of_new(self) -> float:
        """Mean of KL(old‖new) over the states that the new policy visits."""
        return float(occupancy(self.right) @ action_kl(old(), self.right))

    @property
    def most(self) -> float:
        """The largest KL(old‖new) of any cell."""
        return float(np.max(action_kl(old(), self.right)))

    @property
    def weights(self) -> Values:
        """π_new(a|s) / π_old(a|s), [cells, 2]."""
        return actions(self.right) / actions(old())

    @property
    def chances(self) -> Values:
        """How often the old policy's rollout has each cell and action, [cells, 2]."""
        return occupancy(old())[:, None] * actions(old())

    @property
    def clipped(self) -> float:
        """Share of steps whose weight is outside 1 ± ε, PPO's clip fraction."""
        # A step at the very edge is inside, whatever its last bit says.
        return float(np.sum(self.chances[np.abs(self.weights - 1) > CLIP + 1e-12]))

    @property
    def effective(self) -> float:
        """Effective share of the sample, 1 / E[w²], of one step."""
        return 1 / float(np.sum(self.chances * self.weights**2))

    @property
    def moved(self) -> float:
        """Total variation between the occupancies."""
        return float(kb.divergence(occupancy(old()), occupancy(self.right), "tv"))

    def other_kl(self, most: float = np.inf) -> float:
        """KL(new‖old) over the old policy's states by E[w log w], the factor w cut off."""
        weights = self.weights
        return float(np.sum(self.chances * np.minimum(weights, most) * np.log(weights)))


def of_size(direction: str, kl: float) -> Update:
    """The update in a direction that would be logged with this KL."""
    from scipy.optimize import brentq

    def off(logit: float) -> float:
        return Update(shifted(logit, DIRECTIONS[direction])).kl - kl

    return Update(shifted(float(brentq(off, 0.0, 30.0, xtol=1e-14)), DIRECTIONS[direction]))  # type: ignore[arg-type]


def jumps(*directions: str) -> list[float]:
    """The KLs at which an action leaves 1 ± ε and the clip fraction leaps.

    Args:
        directions: Which; all by default.
    """
    found = []
    for direction in directions or DIRECTIONS:
        cells = DIRECTIONS[direction]
        for edge in (OLD_RIGHT * (1 + CLIP), 1 - (1 - OLD_RIGHT) * (1 - CLIP)):
            right = old()
            right[cells] = edge
            found.append(Update(right).kl)
    return found
