"""The product of the weights along a path, exactly: by cell and number of steps to the right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kullback.experiments.occupancy.measure import CELLS, SLIP, Values, at_steps, old

LAST = CELLS - 1


@dataclass(frozen=True, slots=True)
class Products:
    """Paths of the old policy after some steps, for a new policy that is the same in all cells.

    Args:
        joint: Probability of a cell and of a number of choices of right, [cells, steps + 1].
        log_weight: Log of the product of weights for each number, [steps + 1].
        new: Where the new policy is, [cells].
    """

    joint: Values
    log_weight: Values
    new: Values

    def mean(self, most: float = np.inf) -> float:
        """Mean weight, cut off; what it lacks of 1 is the mass of the new policy that is lost."""
        return float(np.sum(self.joint.sum(axis=0) * self._cut(most)))

    def at_last(self, most: float = np.inf) -> float:
        """The weighted share of paths in the last cell: what an off-policy estimate says."""
        return float(self.joint[LAST] @ self._cut(most))

    def effective(self, most: float = np.inf) -> float:
        """(E w)² / E w², the effective share of the paths."""
        second = float(np.sum(self.joint.sum(axis=0) * self._cut(most) ** 2))
        return self.mean(most) ** 2 / second

    def kl(self, most: float = np.inf) -> float:
        """KL(new‖old) of the paths by E[w log w], the factor w cut off."""
        return float(np.sum(self.joint.sum(axis=0) * self._cut(most) * self.log_weight))

    def _cut(self, most: float) -> Values:
        return np.minimum(np.exp(self.log_weight), most)


def along(new: Values, steps: int) -> list[Products]:
    """After 0, 1, … steps.

    Args:
        new: The new policy, the same in all cells.
        steps: The longest paths.
    """
    before, after = old()[0], new[0]
    where = at_steps(new, steps)
    joint = np.zeros((CELLS, steps + 1))
    joint[0, 0] = 1.0
    found = []
    for step in range(steps + 1):
        count = np.arange(step + 1)
        log_weight = count * np.log(after / before) + (step - count) * np.log(
            (1 - after) / (1 - before)
        )
        found.append(Products(joint[:, : step + 1].copy(), log_weight, where[step]))
        joint = _step(joint, before)
    return found


def _step(joint: Values, right: float) -> Values:
    """One step further; the number of choices of right is counted whether or not they slip."""
    up = np.vstack([np.zeros_like(joint[:1]), joint[:-1]])
    up[-1] += joint[-1]  # the wall
    down = np.vstack([joint[1:], np.zeros_like(joint[:1])])
    down[0] += joint[0]
    chose_right = right * (SLIP * joint + (1 - SLIP) * up)
    chose_left = (1 - right) * (SLIP * joint + (1 - SLIP) * down)
    counted = np.zeros_like(joint)
    counted[:, 1:] = chose_right[:, :-1]
    return counted + chose_left
