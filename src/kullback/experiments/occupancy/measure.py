"""A corridor of 21 cells: where each policy is, exactly, and how far apart two policies are.

A policy is its probability of going right, [cells]. One step in five slips and stays; so does a
step into a wall. Both policies start in cell 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kullback as kb

CELLS = 21
SLIP = 0.2
OLD_RIGHT = 0.45
DISCOUNT = 0.995
STEP_KL = 0.005  # nats, of the update that is shown

Values = NDArray[np.float64]


def old() -> Values:
    """The policy that sampled."""
    return np.full(CELLS, OLD_RIGHT)


def shifted(logit: float, cells: slice = slice(None)) -> Values:
    """The old policy with a change of the logit of going right in some cells."""
    right = old()
    odds = right[cells] / (1 - right[cells]) * np.exp(logit)
    right[cells] = odds / (1 + odds)
    return right


def even(kl: float) -> Values:
    """The policy that goes right more often everywhere, and is this far from the old one."""
    from scipy.optimize import brentq

    def off(logit: float) -> float:
        return float(action_kl(old(), shifted(logit))[0]) - kl

    return shifted(float(brentq(off, 0.0, 20.0, xtol=1e-15)))  # type: ignore[arg-type]


def actions(right: Values) -> Values:
    """Probabilities of left and right, [cells, 2]."""
    return np.stack([1 - right, right], axis=1)


def action_kl(p: Values, q: Values) -> Values:
    """KL(p‖q) of the action in each cell, nats."""
    return kb.divergence(actions(p), actions(q))


def moves(right: Values) -> Values:
    """Probability of each next cell (column) from each cell (row)."""
    here = np.arange(CELLS)
    step = SLIP * np.eye(CELLS)
    np.add.at(step, (here, np.minimum(here + 1, CELLS - 1)), (1 - SLIP) * right)
    np.add.at(step, (here, np.maximum(here - 1, 0)), (1 - SLIP) * (1 - right))
    return step


def at_steps(right: Values, steps: int) -> Values:
    """Where a policy is after 0, 1, … steps, [steps + 1, cells]."""
    at = [np.eye(CELLS)[0]]
    step = moves(right)
    for _ in range(steps):
        at.append(at[-1] @ step)
    return np.array(at)


def occupancy(right: Values, discount: float = DISCOUNT) -> Values:
    """(1 − γ) Σ γ^t P(in the cell at step t), by one linear solve; γ = 1 is the long run."""
    system = np.eye(CELLS) - discount * moves(right).T
    known = (1 - discount) * np.eye(CELLS)[0]
    if discount == 1:  # the rows depend on each other: one gives way to the sum
        system[-1], known[-1] = 1.0, 1.0
    return np.linalg.solve(system, known)


def path_kl(p: Values, q: Values, steps: int) -> Values:
    """KL of the paths of 0, 1, … steps, nats: the action KLs in the cells where p is, added up.

    The corridor moves both policies alike, so that its probabilities cancel in the log-ratio.
    """
    each = at_steps(p, steps)[:-1] @ action_kl(p, q)
    return np.concatenate([[0.0], np.cumsum(each)])


def enumerated(p: Values, q: Values, steps: int) -> tuple[float, float, float]:
    """KL of all paths with actions, of their cells alone, and of the last cell, over every path."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Values] = {((0,), ()): np.ones(2)}
    both = np.stack([actions(p), actions(q)])
    for _ in range(steps):
        longer: dict[tuple[tuple[int, ...], tuple[int, ...]], Values] = {}
        for (cells, done), chance in found.items():
            for action, way in enumerate((-1, 1)):
                end = min(max(cells[-1] + way, 0), CELLS - 1)
                for cell, share in ((cells[-1], SLIP), (end, 1 - SLIP)):
                    key = ((*cells, cell), (*done, action))
                    more = chance * both[:, cells[-1], action] * share
                    longer[key] = longer.get(key, np.zeros(2)) + more
        found = longer
    return (
        _kl(found),
        _kl(_merged(found, lambda key: key[0])),
        _kl(_merged(found, lambda key: key[0][-1])),
    )


def _merged(found: dict, kept: Callable[[Any], Any]) -> dict:
    merged: dict = {}
    for key, chance in found.items():
        merged[kept(key)] = merged.get(kept(key), np.zeros(2)) + chance
    return merged


def _kl(found: dict) -> float:
    p, q = np.array(list(found.values())).T
    return float(kb.divergence(p, q))


def bounds(p: Values, q: Values, discount: float) -> tuple[float, float]:
    """What the total variation of the occupancies is at most: by the mean TV, and by the mean KL.

    γ/(1 − γ) E TV is Achiam et al.'s (2017). The other is Pinsker's inequality on γ/(1 − γ) E KL,
    the KL of a path that ends at each step with probability 1 − γ. Means are over p's occupancy.
    """
    where, much = occupancy(p, discount), discount / (1 - discount)
    tv = kb.divergence(actions(p), actions(q), "tv")
    return much * float(where @ tv), float(np.sqrt(much * (where @ action_kl(p, q)) / 2))
