"""A filtered sampler: what each estimate is the mean of, summed over all tokens.

p is the policy as it is scored (temperature 1, nothing cut), s the sampler that the filter makes
of it, q the reference. Tokens are drawn from s; of each, log p (raw) or log s (processed) was
logged, and log q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]

P = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
Q = np.array([0.3, 0.3, 0.1, 0.05, 0.17, 0.08])
SAME_TAIL = np.array([0.35, 0.3, 0.15, 0.1, 0.06, 0.04])  # keeps 0.9 at top-p 0.9, as P does
DRAWS = 500_000


def zipf() -> tuple[Values, Values]:
    """A policy of 2,000 tokens, p(rank) ∝ 1/rank, and a reference that moved smoothly from it."""
    p = 1 / np.arange(1, 2001)
    q = p * np.exp(0.5 * np.random.default_rng(0).standard_normal(len(p)))
    return p / np.sum(p), q / np.sum(q)


@dataclass(frozen=True, slots=True)
class Filter:
    """What an engine does to the policy before it draws, the temperature first.

    Args:
        temperature: The policy's log-probs are divided by it.
        top_k: Only so many of the likeliest tokens stay.
        top_p: Only the fewest likeliest tokens that have so much mass stay.
        min_p: Only tokens of at least this share of the likeliest one's probability stay.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    def __call__(self, p: Values) -> Values:
        """The sampler that it makes of a policy."""
        heated = p ** (1 / self.temperature)
        heated = heated / np.sum(heated)
        order = np.argsort(-heated, kind="stable")
        ranked = heated[order]
        stays = ranked >= self.min_p * ranked[0]
        stays &= np.cumsum(ranked) - ranked < self.top_p - 1e-12
        stays &= np.arange(len(p)) < (self.top_k or len(p))
        kept = np.zeros_like(heated)
        kept[order[stays]] = ranked[stays]
        return kept / np.sum(kept)


@dataclass(frozen=True, slots=True)
class Means:
    """The exact mean, over the sampler's tokens, of everything that one may compute of them.

    Args:
        policy: KL(p‖q).
        sampler: KL(s‖q).
        both_cut: KL(s‖q) of a reference that is cut to the same tokens.
        kept_p: The policy's mass on the tokens that stay.
        kept_q: The reference's.
        raw_k1: k1 of log q − log p.
        raw_k3: k3 of the same.
        raw_r: q/p − 1.
        k1: k1 of log q − log s.
        k3: k3 of the same.
        r: q/s − 1.
        k3_fixed: q/s − q(kept) − log(q/s), which is k3 where nothing is cut.
        weight: p/s.
        weighted_k1: k1 of log q − log p, weighted by p/s.
        weighted_k3: k3 of the same, weighted.
        bound: What KL(p‖q) is at least, by the kept tokens and the two masses that were cut.
    """

    policy: float
    sampler: float
    both_cut: float
    kept_p: float
    kept_q: float
    raw_k1: float
    raw_k3: float
    raw_r: float
    k1: float
    k3: float
    r: float
    k3_fixed: float
    weight: float
    weighted_k1: float
    weighted_k3: float
    bound: float


def values(p: Values, s: Values, q: Values) -> dict[str, Values]:
    """What one token says, for each token that stays."""
    stays = s > 0
    raw, processed = np.log(q[stays] / p[stays]), np.log(q[stays] / s[stays])
    weight = p[stays] / s[stays]
    return {
        "raw_k1": kb.k1(raw),
        "raw_k3": kb.k3(raw),
        "raw_r": np.expm1(raw),
        "k1": kb.k1(processed),
        "k3": kb.k3(processed),
        "r": np.expm1(processed),
        "k3_fixed": kb.k3(processed) + 1 - np.sum(q[stays]),
        "weight": weight,
        "weighted_k1": weight * kb.k1(raw),
        "weighted_k3": weight * kb.k3(raw),
    }


def means(p: Values, s: Values, q: Values) -> Means:
    """All of them, for tokens drawn from s."""
    stays = s > 0
    kept_p, kept_q = float(np.sum(p[stays])), float(np.sum(q[stays]))
    cut = max(1 - kept_p, 0.0), max(1 - kept_q, 0.0)
    pooled_p, pooled_q = (np.append(it[stays], rest) for it, rest in zip((p, q), cut, strict=True))
    return Means(
        policy=float(kb.divergence(p, q)),
        sampler=float(kb.divergence(s, q)),
        both_cut=float(kb.divergence(s, np.where(stays, q, 0.0) / kept_q)),
        kept_p=kept_p,
        kept_q=kept_q,
        bound=float(kb.divergence(pooled_p, pooled_q)),
        **{name: float(s[stays] @ value) for name, value in values(p, s, q).items()},
    )


def retailed(share: float, s: Values) -> Values:
    """The reference with the mass that was cut off divided anew: this share on token 5."""
    q = np.where(s > 0, Q, 0.0)
    q[4], q[5] = share * (1 - np.sum(q)), (1 - share) * (1 - np.sum(q))
    return q


def relative_error(p: Values, s: Values, q: Values, name: str, samples: int) -> float:
    """The standard error of a mean over so many tokens, over KL(p‖q)."""
    value, chance = values(p, s, q)[name], s[s > 0]
    variance = float(chance @ (value - chance @ value) ** 2)
    return float(np.sqrt(variance / samples)) / float(kb.divergence(p, q))


@dataclass(frozen=True, slots=True)
class Drawn:
    """The mean of draws, the exact one, and how many exact standard errors they are apart."""

    mean: float
    exact: float
    z: float


def draw(p: Values, s: Values, q: Values, seed: int) -> dict[str, Drawn]:
    """Of everything that one token says, but the weight, which is one number where a cut made s."""
    chance = s[s > 0]
    drawn = np.random.default_rng(seed).choice(len(chance), size=DRAWS, p=chance)
    found = {}
    said = values(p, s, q)
    for name in said.keys() - {"weight"}:
        value = said[name]
        exact, mean = float(chance @ value), float(np.mean(value[drawn]))
        error = float(np.sqrt(chance @ (value - exact) ** 2 / DRAWS))
        found[name] = Drawn(mean, exact, (mean - exact) / error)
    return found
