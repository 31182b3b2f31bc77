"""A language in which the reward that is optimized and the one that is meant part in rare answers.

Every answer has four words. The proxy reward counts them and is fooled by one that the reference
hardly uses; the gold reward is what was meant. All 256 answers are summed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]

WORDS = ("plain", "fact", "praise", "trick")
SHARES = (0.61, 0.2, 0.15, 0.04)  # of the words under the reference, before a context bends them
BEND = 0.4  # logits by which a context does
PROXY_WORTH = (0.0, 1.0, 0.5, 1.5)
GOLD_WORTH = (0.0, 1.0, 0.0, -1.0)
LENGTH = 4


def _reference() -> kb.worlds.Tabular:
    shape = (sum(len(WORDS) ** n for n in range(LENGTH)), len(WORDS))
    empty = kb.worlds.Tabular({"reference": np.zeros(shape)}, "reference", LENGTH)
    contexts = empty.tree.contexts
    code = np.array([sum((t + 1) * 5**i for i, t in enumerate(c)) for c in contexts])[:, None]
    word = np.arange(len(WORDS))
    bend = ((code * 7 + word * 5 + code * word * 3) % 11 - 5) / 5
    logits = np.log(SHARES) + BEND * bend
    table = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return kb.worlds.Tabular({"reference": table}, sampler="reference", max_length=LENGTH)


WORLD = _reference()
TREE = WORLD.tree
Q = WORLD.probability("reference")
LOG_Q = WORLD.by_token("reference")
PROXY, GOLD = (np.array(worth)[TREE.tokens].sum(axis=1) for worth in (PROXY_WORTH, GOLD_WORTH))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a policy stands: its KL to the reference, and both rewards."""

    kl: float
    proxy: float
    gold: float


def stands(p: Values) -> dict[str, Values]:
    """The fields of ``Place``, of policies given by the probabilities of all answers."""
    return {"kl": np.asarray(kb.divergence(p, Q)), "proxy": p @ PROXY, "gold": p @ GOLD}


def place(p: Values) -> Place:
    """Of one policy."""
    return Place(**{field: float(value) for field, value in stands(p).items()})


def table(p: Values) -> Values:
    """The log-probs of the next word at each context, [contexts, words]."""
    mass = np.zeros((len(TREE.contexts), len(WORDS)))
    np.add.at(mass, (TREE.context, TREE.tokens), p[:, None])
    return np.log(mass / mass.sum(axis=1, keepdims=True))


def mix(p: Values) -> Values:
    """How often a policy writes each word."""
    return np.array([float(p @ np.mean(TREE.tokens == word, axis=1)) for word in range(len(WORDS))])


def tilted(beta: float) -> Values:
    """Q exp(proxy / beta), normalized: no policy has more proxy reward at its KL."""
    p = Q * np.exp((PROXY - PROXY.max()) / beta)
    return p / p.sum()


def levels() -> tuple[Values, Values]:
    """The proxy rewards that occur, and the reference's probability of each."""
    worth, which = np.unique(PROXY, return_inverse=True)
    return worth, np.bincount(which, weights=Q).astype(np.float64)


def best_of(n: float) -> Values:
    """The policy that draws n answers of the reference and keeps the best by the proxy.

    Among equals it keeps one by lot. The formula does not ask n to be whole.
    """
    worth, mass = levels()
    below = np.concatenate([[0.0], np.cumsum(mass)])
    below[-1] = 1.0
    gained = np.diff(below**n) / mass
    return Q * gained[np.searchsorted(worth, PROXY)]


def bound(n: float) -> float:
    """Log n − (n − 1)/n: the KL of best-of-n where no two answers tie, else more than it."""
    return float(np.log(n) - (n - 1) / n)


@cache
def at_kl(kl: float, way: str) -> tuple[float, Place]:
    """The beta of the ``"tilt"`` or the n of ``"best-of-n"`` with that KL, and where it is."""
    from scipy.optimize import brentq

    policy, low, high = {"tilt": (tilted, -8.0, 4.0), "best-of-n": (best_of, 0.0, 12.0)}[way]
    sign = 1 if way == "tilt" else -1

    def over(log_setting: float) -> float:
        return sign * (kl - place(policy(float(np.exp(log_setting)))).kl)

    setting = float(np.exp(brentq(over, low, high, xtol=1e-13)))  # type: ignore[arg-type]
    return setting, place(policy(setting))


@cache
def summit(way: str) -> Place:
    """Where the gold reward is highest along a way, to 0.05 nats."""
    found = (at_kl(round(0.05 * i, 2), way)[1] for i in range(1, 121))
    return max(found, key=lambda one: one.gold)
