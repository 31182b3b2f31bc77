"""How noisy the KL of one sequence is, by its length: exactly, for lengths that are fixed.

Given its prompt, tokens of the worlds here are independent, so that moments of sums follow from
those of one token. kullback's estimators are applied to the outcomes, not their closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]

SHARE = 1 / 16  # of the prefixes that the subset scores over the whole vocabulary


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviations over the KL of the sequence; the KL itself in nats.

    Those of the subset hold where a sequence has a prefix to score: from 16 tokens on.
    """

    kl: float
    k1: float
    tokens: float  # k3 of each token, added up
    sums: float  # k3 of the summed log-probs
    exact: float  # Rao-Blackwell: the exact KL at every prefix
    subset: float  # the exact KL at some prefixes
    corrected: float  # the same, with k3 at every token


def normal(shift: float, length: int) -> Spread:
    """Tokens whose log-ratio is that of N(0, 1) and N(shift, 1); every prefix has one KL."""
    from scipy.stats import norm

    p, q = norm(0.0, 1.0), norm(shift, 1.0)
    kl = float(kb.divergence(p, q))
    chi2 = float(kb.divergence(q, p, "chi2"))
    jeffreys = kl + float(kb.divergence(q, p))
    noise = chi2 - 2 * jeffreys  # Var(k3) − Var(k1)
    total = length * kl
    k1 = length * shift**2
    token = length * (shift**2 + noise)
    one = _sums(k1, length * jeffreys, length * np.log1p(chi2))
    sd = [float(np.sqrt(v)) / total for v in (k1, token, one, (1 / SHARE - 1) * token)]
    return Spread(total, sd[0], sd[1], sd[2], exact=0.0, subset=0.0, corrected=sd[3])


def _sums(k1: float, jeffreys: float, log_square: Any) -> float:
    """Var(R − 1 − log R) of a whole sequence's ratio R, where log E[R²] is given by kind."""
    with np.errstate(over="ignore"):
        return float(np.mean(np.expm1(log_square))) + k1 - 2 * jeffreys


@cache
def world(kinds: int) -> kb.worlds.Mixture:
    """256 prefixes whose KL differs: met by all prompts alike, or 8 by each of 32 kinds."""
    tables = kb.worlds.CLEAN_WORLDS["prompt_effects"](1)
    assert isinstance(tables, kb.worlds.Mixture)
    return replace(tables, kinds=kinds, ends=False)


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Moments of one token by kind of prompt, [kinds]."""

    mean: Values
    k1: Values  # variances of one token
    k3: Values
    exact: Values
    given: Values  # variance of k3 at a given prefix
    square: Values  # E[(q/p)²]
    jeffreys: Values


@cache
def _moments(kinds: int) -> _Kinds:
    met = world(kinds)
    log_p, log_q = met.log_probs["rollout"], met.log_probs["reference"]
    p, log_ratio = np.exp(log_p), log_q - log_p

    def over(values: Values) -> Values:
        return np.sum(p * values, axis=1)

    def by_kind(of_prefix: Values) -> Values:
        return of_prefix.reshape(kinds, -1).mean(axis=1)

    kl, k1, k3 = met.kl("rollout", "reference"), kb.k1(log_ratio), kb.k3(log_ratio)
    mean = by_kind(kl)
    second = {name: over(one**2) for name, one in (("k1", k1), ("k3", k3))}
    return _Kinds(
        mean,
        by_kind(second["k1"]) - mean**2,
        by_kind(second["k3"]) - mean**2,
        by_kind(kl**2) - mean**2,
        by_kind(second["k3"] - kl**2),
        by_kind(over(np.exp(2 * log_ratio))),
        by_kind(kl + met.kl("reference", "rollout")),
    )


def prompts(kinds: int, length: int) -> Spread:
    """One sequence of a random prompt; with one kind, all tokens are independent."""
    of = _moments(kinds)
    total = length * float(np.mean(of.mean))
    between = length**2 * float(np.var(of.mean))

    def sd(variance: Any) -> float:
        return float(np.sqrt(length * np.mean(variance) + between)) / total

    k1 = (sd(of.k1) * total) ** 2
    whole = _sums(k1, length * float(np.mean(of.jeffreys)), length * np.log(of.square))
    return Spread(
        total, sd(of.k1), sd(of.k3), float(np.sqrt(whole)) / total, sd(of.exact),
        sd(of.exact / SHARE), sd(of.exact + of.given * (1 / SHARE - 1)),
    )  # fmt: skip


def longest(kinds: int) -> int:
    """The most tokens at which k3 of the sum is no noisier than k1."""
    length = 1
    while (at := prompts(kinds, length + 1)).sums <= at.k1:
        length += 1
    return length


@dataclass(frozen=True, slots=True)
class Batch:
    """A mean over drawn sequences beside the exact one."""

    mean: float
    exact: float
    error: float
    seen: float  # the standard error by the spread of the draws

    @property
    def z(self) -> float:
        """How many exact standard errors the mean is off."""
        return (self.mean - self.exact) / self.error


def batch(shift: float, length: int, sequences: int, seed: int) -> dict[str, Batch]:
    """What one batch of sequences of normal tokens says, by estimator."""
    x = np.random.default_rng(seed).normal(size=(sequences, length))
    log_ratio = shift * x - shift**2 / 2
    spread = normal(shift, length)
    drawn = {
        "k1": (kb.k1(log_ratio).sum(axis=1), spread.k1),
        "k3 of each token": (kb.k3(log_ratio).sum(axis=1), spread.tokens),
        "k3 of the sum": (kb.k3(log_ratio.sum(axis=1)), spread.sums),
    }
    root = float(np.sqrt(sequences))
    return {
        name: Batch(
            float(np.mean(values)), spread.kl, sd * spread.kl / root, float(np.std(values)) / root
        )
        for name, (values, sd) in drawn.items()
    }


@cache
def three(ends: bool) -> dict[str, tuple[float, float]]:
    """Mean and variance of each estimator over all sequences of a small language."""
    small = kb.worlds.three_tokens(ends=ends)
    log_ratio = small.by_token("reference") - small.by_token("current")
    exact = small.by_context(small.kl("current", "reference"))
    values = {
        "k1": kb.k1(log_ratio).sum(axis=1),
        "k3 of each token": kb.k3(log_ratio).sum(axis=1),
        "k3 of the sum": kb.k3(log_ratio.sum(axis=1)),
        "Rao-Blackwell": exact.sum(axis=1),
    }
    return {
        name: (small.mean(one, by="current"), small.variance(one, by="current"))
        for name, one in values.items()
    }
