"""Episodes of the old policy: what is estimated from them, beside the exact mean and error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kullback as kb
from kullback.experiments.occupancy.measure import (
    CELLS,
    OLD_RIGHT,
    SLIP,
    Values,
    actions,
    moves,
    old,
)

EPISODES = 1000
STEPS = 300
LOGGED, TURNED, VISITED = (
    "KL(old‖new), old's states",
    "KL(new‖old), old's states",
    "KL(new‖old), new's states",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question about episodes, nats per episode.

    Args:
        exact: The answer.
        error: The exact standard error of k1 from so many episodes.
        drawn: What ``kb.estimate`` makes of the episodes.
    """

    exact: float
    error: float
    drawn: kb.Estimate

    @property
    def z(self) -> float:
        """The distance in exact standard errors."""
        return (self.drawn.mean - self.exact) / self.error


def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells and actions (1 is right) of episodes of the old policy, [episodes, steps]."""
    rng = np.random.default_rng(seed)
    cell = np.zeros(EPISODES, dtype=int)
    cells, chosen = [], []
    for _ in range(STEPS):
        right = (rng.random(EPISODES) < OLD_RIGHT).astype(int)
        cells.append(cell)
        chosen.append(right)
        there = np.clip(cell + 2 * right - 1, 0, CELLS - 1)
        cell = np.where(rng.random(EPISODES) < SLIP, cell, there)
    return np.array(cells).T, np.array(chosen).T


def moments(value: Values, carried: Values, steps: int = STEPS) -> tuple[float, float]:
    """Mean and variance of value + carried · (the rest of the episode), under the old policy.

    Args:
        value: What a step is worth, by cell and action, [cells, 2].
        carried: What the rest is multiplied by, [cells, 2]: 1, or a weight.
        steps: Of the episode.
    """
    first, second = np.zeros(CELLS), np.zeros(CELLS)
    ways = np.stack([moves(np.zeros(CELLS)), moves(np.ones(CELLS))])  # of left, of right
    for _ in range(steps):
        rest, rest_squared = (ways @ first).T, (ways @ second).T
        squared = value**2 + 2 * value * carried * rest + carried**2 * rest_squared
        first = np.sum(actions(old()) * (value + carried * rest), axis=1)
        second = np.sum(actions(old()) * squared, axis=1)
    return float(first[0]), float(second[0] - first[0] ** 2)


def asked(new: Values, seed: int) -> dict[str, Asked]:
    """The KL that is logged, the other direction, and that at the states which the new one visits.

    All by k1, from the same episodes of the old policy.
    """
    cells, chosen = draw(seed)
    log_old, log_new = np.log(actions(old())), np.log(actions(new))
    log_weight = log_new - log_old
    weight, alone = np.exp(log_weight), np.ones((CELLS, 2))
    known = {
        LOGGED: moments(-log_weight, alone),
        TURNED: moments(weight * log_weight, alone),
        VISITED: moments(weight * log_weight, weight),
    }
    of_old, of_new = log_old[cells, chosen], log_new[cells, chosen]
    drawn = {
        LOGGED: _estimate(of_old, of_new, None, "sampler"),
        TURNED: _estimate(of_new, of_old, of_old, "sampler"),
        VISITED: _estimate(of_new, of_old, of_old, "p"),
    }
    return {
        name: Asked(exact, float(np.sqrt(variance / EPISODES)), drawn[name])
        for name, (exact, variance) in known.items()
    }


def _estimate(log_p: Values, log_q: Values, sampler: Values | None, prefixes: str) -> kb.Estimate:
    return kb.estimate(log_p=log_p, log_q=log_q, log_sampler=sampler, prefixes=prefixes,
                       level="sequence_sum", method="k1")  # fmt: skip
