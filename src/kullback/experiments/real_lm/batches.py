"""Batches of real tokens: prompts with replacement, and one draw at each of their prefixes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import kullback as kb
from kullback.experiments.real_lm.measure import Values, arrays, pair

SIZES = (8, 16, 32, 64)
REPEATS = 200


@dataclass(frozen=True, slots=True)
class Batches:
    """What batches of one size said.

    Args:
        kl: The exact KL.
        k1: The k1 of each batch, nats.
        k3: Its k3.
        auto: Its ``kb.estimate``.
        held: Whether the interval of the latter had the KL in it.
        missing: Its missing mass, 1 − mean q/p.
    """

    kl: float
    k1: Values
    k3: Values
    auto: Values
    held: NDArray[np.bool_]
    missing: Values

    def error(self, method: str) -> float:
        """The root mean squared error that these batches had."""
        return float(np.sqrt(np.mean((getattr(self, method) - self.kl) ** 2)))

    def better(self) -> float:
        """That of k1 or k3, whichever was smaller."""
        return min(self.error("k1"), self.error("k3"))

    def usual(self, method: str) -> float:
        """The error that half of the batches stay below."""
        return float(np.median(np.abs(getattr(self, method) - self.kl)))


def batches(name: str, prompts: int, seed: int) -> Batches:
    """Draw batches.

    Args:
        name: A pair with draws.
        prompts: Of each batch.
        seed: Of what is drawn.
    """
    rng = np.random.default_rng(seed)
    log_r, it = arrays()[f"{name}/log_r"], pair(name)
    sequence = arrays()["sequence"]
    places = [np.flatnonzero(it.prompt == one) for one in np.unique(it.prompt)]
    lengths = [np.unique(sequence[at], return_counts=True)[1] for at in places]
    found: dict[str, list[float]] = {"k1": [], "k3": [], "auto": [], "held": [], "missing": []}
    for _ in range(REPEATS):
        chosen = rng.integers(len(places), size=prompts)
        prefixes = np.concatenate([places[one] for one in chosen])
        columns = rng.integers(log_r.shape[1], size=len(prefixes))
        drawn = log_r[prefixes, columns].astype(np.float64)
        told = kb.estimate(
            log_p=np.zeros(len(drawn)),
            log_q=drawn,
            lengths=np.concatenate([lengths[one] for one in chosen]),
            clusters=np.repeat(np.arange(prompts), [len(lengths[one]) for one in chosen]),
        )
        missing = 1 - float(np.exp(drawn).mean())
        k1 = -float(drawn.mean())
        values = (k1, k1 - missing, told.mean, float(told.low <= it.mean <= told.high), missing)
        for key, value in zip(found, values, strict=True):
            found[key].append(value)
    k1, k3, auto, held, missing = (np.array(values) for values in found.values())
    return Batches(it.mean, k1, k3, auto, held.astype(np.bool_), missing)


def seen(name: str) -> tuple[int, float]:
    """How many draws there are, and the variance of k3 within a prefix that they show."""
    log_r = arrays()[f"{name}/log_r"].astype(np.float64)
    return log_r.size, float(kb.k3(log_r).var(axis=1, ddof=1).mean())


def negative(name: str) -> float:
    """The share of draws whose k1 is below 0."""
    return float(np.mean(arrays()[f"{name}/log_r"] > 0))
