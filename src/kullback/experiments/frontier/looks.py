"""The KL that a run logs at its checkpoints, and the checkpoint at which a limit on it stops it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import kullback as kb
from kullback.experiments.frontier.measure import LENGTH, LOG_Q, TREE, Values, place
from kullback.experiments.frontier.training import (
    BATCH,
    EVERY,
    STEPS,
    TABLE_Q,
    TERMS,
    answers,
    by_word,
    climbed,
)

Places = NDArray[np.intp]

STEPS_LOGGED = range(0, STEPS + 1, EVERY)
ESTIMATORS = ("k1", "k3", "Rao-Blackwell")
RUNS = 4000  # whose logged KLs are drawn
ASKED = 100  # batches that kb.estimate is asked about


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A policy that is looked at.

    Args:
        step: Of the training.
        p: The probability of each answer.
        kl: KL(p‖q).
        proxy: E[proxy].
        gold: E[gold].
        values: By estimator, what each answer says of the KL.
    """

    step: int
    p: Values
    kl: float
    proxy: float
    gold: float
    values: dict[str, Values]

    def error(self, name: str) -> float:
        """The standard error of a logged KL: exact, for a batch."""
        values = self.values[name]
        return float(np.sqrt(self.p @ (values - self.p @ values) ** 2 / BATCH))


@cache
def checkpoints() -> tuple[Checkpoint, ...]:
    """Of the run with k1 in the reward, by its expected gradient."""
    found = []
    for step in STEPS_LOGGED:
        log_p = climbed(TERMS[0])[step]
        p, log_r = answers(log_p), LOG_Q - by_word(log_p)
        along = kb.exact(log_probs_p=log_p, log_probs_q=TABLE_Q)[TREE.context]
        values = {
            "k1": kb.k1(log_r).sum(axis=1),
            "k3": kb.k3(log_r).sum(axis=1),
            "Rao-Blackwell": along.sum(axis=1),
        }
        at = place(p)
        found.append(Checkpoint(step, p, at.kl, at.proxy, at.gold, values))
    return tuple(found)


def top() -> Checkpoint:
    """The checkpoint with the highest gold reward."""
    return max(checkpoints(), key=lambda one: one.gold)


@cache
def logged(seed: int) -> dict[str, Values]:
    """By estimator, what many runs log of the same batches, [runs, checkpoints]."""
    rng = np.random.default_rng(seed)
    found = {name: [] for name in ESTIMATORS}
    for one in checkpoints():
        ends = np.cumsum(one.p)
        rows = np.searchsorted(ends, rng.random((RUNS, BATCH)) * ends[-1])
        for name in ESTIMATORS:
            found[name].append(one.values[name][rows].mean(axis=1))
    return {name: np.stack(columns, axis=1) for name, columns in found.items()}


def stops(read: Values, limit: float) -> Places:
    """The first checkpoint of each run at which it reads more than the limit; else the last."""
    over = read > limit
    return np.where(over.any(axis=1), over.argmax(axis=1), read.shape[1] - 1)


def exact_stop(limit: float) -> int:
    """The checkpoint at which the exact KL first exceeds the limit."""
    return int(stops(np.array([[one.kl for one in checkpoints()]]), limit)[0])


def z_scores(seed: int) -> Values:
    """How far the mean of the logged KLs is from the exact one, in its exact standard errors."""
    found = [
        (logged(seed)[name][:, place].mean() - one.kl) / (one.error(name) / np.sqrt(RUNS))
        for name in ESTIMATORS
        for place, one in enumerate(checkpoints())
        if one.step
    ]
    return np.array(found)


@cache
def auto(step: int, seed: int) -> tuple[float, float]:
    """The bias and the root mean square error of ``kb.estimate`` for a batch of a checkpoint."""
    one = checkpoints()[step // EVERY]
    log_p = by_word(climbed(TERMS[0])[step])
    rng, mask = np.random.default_rng((seed, step)), np.ones((BATCH, LENGTH), dtype=np.bool_)
    apart = []
    for _ in range(ASKED):
        rows = rng.choice(len(one.p), size=BATCH, p=one.p / one.p.sum())
        asked = kb.estimate(log_p=log_p[rows], log_q=LOG_Q[rows], mask=mask, level="sequence_sum")
        apart.append(asked.mean - one.kl)
    return float(np.mean(apart)), float(np.sqrt(np.mean(np.square(apart))))
