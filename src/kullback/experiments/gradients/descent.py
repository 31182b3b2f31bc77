"""Where a policy over four tokens goes when it descends the expected gradient of a KL term.

One token is the whole sequence here, so that nothing but the form and its place differs.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from numpy.typing import NDArray

import kullback as kb
from kullback.experiments.gradients.measure import FORMS, Term

Values = NDArray[np.float64]

Q = np.array([0.4, 0.3, 0.2, 0.1])
FAR = np.array([0.02, 0.08, 0.3, 0.6])  # a start with a hole at the reference's first token
REWARD = np.array([0.0, 0.0, 0.5, 1.0])
BETA = 0.3  # of the KL term where there is a reward
RATE = 0.5  # of a step, in the logits
PARTS = 20  # the starts of the grid are in twentieths


def slope(log_p: Values, term: Term, reward: Values, beta: float) -> Values:
    """The expected gradient of beta · term − E[reward] in the logits of p."""
    value, derivative = FORMS[term.form]
    x, p = log_p - np.log(Q), np.exp(log_p)
    # A reward is a constant before d log p; of a loss the derivative stands there.
    credit = beta * (value(x) if term.use == "reward" else derivative(x)) - reward
    return p * (credit - np.sum(p * credit, axis=-1, keepdims=True))


def descend(start: Values, term: Term, reward: Values, beta: float, steps: int) -> Values:
    """The policy at every step, [steps + 1, …, tokens]."""
    log_p, found = np.log(start), [start]
    for _ in range(steps):
        logits = log_p - RATE * slope(log_p, term, reward, beta)
        top = logits.max(axis=-1, keepdims=True)
        log_p = logits - top - np.log(np.sum(np.exp(logits - top), axis=-1, keepdims=True))
        found.append(np.exp(log_p))
    return np.array(found)


@cache
def alone(term: Term, steps: int) -> Values:
    """From afar, with nothing but the KL term."""
    return descend(FAR, term, np.zeros(len(Q)), 1.0, steps)


@cache
def rewarded(term: Term, steps: int) -> Values:
    """From the reference, with a reward."""
    return descend(Q, term, REWARD, BETA, steps)


def kl(p: Values, q: Values) -> float:
    """KL(p‖q)."""
    return float(kb.divergence(p, q))


@cache
def grid() -> Values:
    """Every policy in twentieths that rules no token out, but for the reference."""
    whole = itertools.product(range(1, PARTS), repeat=len(Q))
    starts = np.array([parts for parts in whole if sum(parts) == PARTS]) / PARTS
    return starts[np.max(np.abs(starts - Q), axis=1) > 1e-9]


def from_grid(term: Term, steps: int) -> tuple[int, int]:
    """How many starts of the grid end nearer to the reference, and how many within 0.001 nats."""
    path = descend(grid(), term, np.zeros(len(Q)), 1.0, steps)
    before, after = (
        kb.exact(log_probs_p=np.log(p), log_probs_q=np.broadcast_to(np.log(Q), p.shape))
        for p in (path[0], path[-1])
    )
    return int(np.sum(after < before - 1e-12)), int(np.sum(after < 1e-3))


def best_by_kl() -> Values:
    """The policy with the most E[reward] − beta KL(p‖q): q exp(reward / beta), normalized."""
    tilted = Q * np.exp(REWARD / BETA)
    return tilted / tilted.sum()


def best_by_other_kl() -> Values:
    """The policy with the most E[reward] − beta KL(q‖p): beta q / (level − reward)."""
    from scipy.optimize import brentq

    def over(level: float) -> float:
        return float(np.sum(BETA * Q / (level - REWARD))) - 1

    top = float(REWARD.max())
    level = float(brentq(over, top + 1e-9, top + 1, xtol=1e-14))  # type: ignore[arg-type]
    return BETA * Q / (level - REWARD)
