"""What finite batches see of a hole, exactly: a batch is its number of hits, which is binomial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kullback as kb
from kullback.experiments.holes.measure import Q, hole, moments

SIZES = (64, 256, 1024, 4096, 16384, 65536)
CONFIDENCE = 0.95
RARE = 1e-9  # what numbers of hits are left out on either side

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Seen:
    """A batch size: what its batches hold of the hole, and how far off they are.

    Args:
        samples: The size.
        unseen: Probability that no sample falls into the hole.
        median_k1: The k1 of the batch whose number of hits is the median, nats.
        median_k3: Its k3.
        median_missing: Its missing mass, 1 − mean q/p.
        error_k1: Root mean squared error of k1 over the KL.
        error_k3: That of k3.
        cover: How often Student's interval around either has the KL in it.
    """

    samples: int
    unseen: float
    median_k1: float
    median_k3: float
    median_missing: float
    error_k1: float
    error_k3: float
    cover: float


def _hits(samples: int, first: float) -> tuple[Values, Values]:
    """The numbers of hits that happen, and their probabilities."""
    from scipy.stats import binom

    low, high = binom.ppf((RARE, 1 - RARE), samples, first)
    hits = np.arange(low, high + 1)
    return hits, binom.pmf(hits, samples, first)


def covers(values: Values, hits: NDArray[Any], samples: int, kl: float) -> NDArray[np.bool_]:
    """Whether Student's interval around a mean has the KL in it, for each number of hits.

    Args:
        values: One sample's value in the hole, and outside.
        hits: Samples in the hole.
        samples: The size of the batch.
        kl: The KL.
    """
    from scipy.stats import t

    inside, outside = values[0], values[1]
    share = hits / samples
    mean = share * inside + (1 - share) * outside
    error = np.abs(inside - outside) * np.sqrt(share * (1 - share) / (samples - 1))
    return np.abs(mean - kl) <= t.ppf((1 + CONFIDENCE) / 2, samples - 1) * error


def seen(samples: int, depth: float) -> Seen:
    """Exactly, over all numbers of hits."""
    p = hole(Q[0] * 10.0**-depth)
    kl = float(kb.divergence(p, Q))
    hits, chance = _hits(samples, float(p[0]))
    share = float(hits[np.searchsorted(np.cumsum(chance), 0.5)]) / samples
    k1, k3, ratio = kb.k1(np.log(Q / p)), kb.k3(np.log(Q / p)), Q / p

    def median(values: Values) -> float:
        return float(share * values[0] + (1 - share) * values[1])

    def error(values: Values) -> float:
        return float(np.sqrt(moments(p, values)[1] / samples)) / kl

    return Seen(
        samples=samples,
        unseen=float((1 - p[0]) ** samples),
        median_k1=median(k1),
        median_k3=median(k3),
        median_missing=1 - median(ratio),
        error_k1=error(k1),
        error_k3=error(k3),
        cover=float(np.sum(chance[covers(k1, hits, samples, kl)])),
    )


def cover_auto(samples: int, depth: float, seed: int) -> float:
    """How often the interval of ``kb.estimate`` has the KL in it; the order of samples is drawn."""
    p = hole(Q[0] * 10.0**-depth)
    kl = float(kb.divergence(p, Q))
    rng = np.random.default_rng(seed)
    total = 0.0
    for hit, chance in zip(*_hits(samples, float(p[0])), strict=True):
        category = (np.arange(samples) >= hit).astype(int)
        rng.shuffle(category)
        log_p, log_q = np.log(p[:2])[category], np.log(Q[:2])[category]
        found = kb.estimate(log_p=log_p, log_q=log_q, lengths=1, confidence=CONFIDENCE)
        total += chance * (found.low <= kl <= found.high)
    return float(total)
