"""Two policies that differ in the probability of the end alone: lengths are geometric.

Their log-ratio has one value where a sequence goes on and another where it ends, so that all means
are closed sums over the length. The KL is the same at every prefix, which Rao-Blackwell reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]
Formula = Callable[[Values], Values]
FORMULAS: dict[str, Formula] = {"k1": kb.k1, "k3": kb.k3}


@dataclass(frozen=True, slots=True)
class Ends:
    """The probability that a token is the last, under p and under q."""

    p: float
    q: float

    @property
    def kl(self) -> float:
        """At every prefix, and so per token, in nats."""
        return _binary(self.p, self.q)

    def values(self, formula: Formula) -> tuple[float, float]:
        """An estimator's value of a token that goes on, and of the last one."""
        log_ratio = np.log([(1 - self.q) / (1 - self.p), self.q / self.p])
        goes_on, last = formula(log_ratio)
        return float(goes_on), float(last)

    def sequence_mean(self, formula: Formula) -> float:
        """The mean over sequences of the mean over tokens: E[1/T] = −p log p / (1 − p)."""
        goes_on, last = self.values(formula)
        return goes_on + (last - goes_on) * self._inverse()

    def sequence_mean_sd(self, formula: Formula) -> float:
        """Of one sequence's token mean: E[1/T²] is a dilogarithm."""
        from scipy.special import spence

        square = self.p / (1 - self.p) * float(spence(self.p))
        goes_on, last = self.values(formula)
        return abs(last - goes_on) * float(np.sqrt(square - self._inverse() ** 2))

    def _inverse(self) -> float:
        return -self.p * float(np.log(self.p)) / (1 - self.p)

    def token_mean(self, formula: Formula) -> float:
        """The sum over all tokens by their number: E[Σ] / E[T]."""
        goes_on, last = self.values(formula)
        return (1 - self.p) * goes_on + self.p * last

    def between(self, formula: Formula, low: int, high: int) -> float:
        """The token mean of the sequences whose length is in a bucket, both ends included."""
        lengths = np.arange(low, high + 1)
        weight = share(self.p, lengths)
        goes_on, last = self.values(formula)
        return float(weight @ ((lengths - 1) * goes_on + last) / (weight @ lengths))

    def sums_sd(self) -> float:
        """Of k3 of a sequence's summed log-probs, over the sequence's KL; infinite at times."""
        grows = (1 - self.q) ** 2 / (1 - self.p)
        if grows >= 1:
            return np.inf
        square = self.q**2 / self.p / (1 - grows)
        jeffreys = self.kl / self.p + _binary(self.q, self.p) / self.q
        variance = square - 1 + (self.total_sd(kb.k1) * self.kl / self.p) ** 2 - 2 * jeffreys
        return float(np.sqrt(variance)) * self.p / self.kl

    def total_sd(self, formula: Formula) -> float:
        """Of an estimator added up over a sequence's tokens, over the sequence's KL."""
        goes_on, _ = self.values(formula)
        return abs(goes_on) * float(np.sqrt(1 - self.p)) / self.kl

    @property
    def exact_sd(self) -> float:
        """Of Rao-Blackwell added up over a sequence: that of the length alone."""
        return float(np.sqrt(1 - self.p))

    @property
    def edge(self) -> float:
        """The q at and below which k3 of sums has no variance."""
        return 1 - float(np.sqrt(1 - self.p))


def _binary(p: float, q: float) -> float:
    return float(kb.divergence([p, 1 - p], [q, 1 - q]))


def share(end: float, lengths: Values | NDArray[np.int64]) -> Values:
    """Of the sequences that have a length, where a token is the last with that probability."""
    return np.asarray(end * (1 - end) ** (lengths - 1.0), dtype=np.float64)


def drawn(ends: Ends, sequences: int, seed: int) -> dict[str, tuple[float, float]]:
    """The sequence mean of draws, and its distance from the exact one in standard errors."""
    lengths = np.random.default_rng(seed).geometric(ends.p, size=sequences)
    found = {}
    for name, formula in FORMULAS.items():
        goes_on, last = ends.values(formula)
        mean = float(np.mean(((lengths - 1) * goes_on + last) / lengths))
        error = ends.sequence_mean_sd(formula) / np.sqrt(sequences)
        found[name] = mean, float((mean - ends.sequence_mean(formula)) / error)
    return found


def selected() -> dict[str, tuple[float, float, float, float]]:
    """Share, and token means of k1, k3 and Rao-Blackwell, of some sequences of a small language."""
    small = kb.worlds.three_tokens(ends=True)
    probability = small.probability("current")
    log_ratio = small.by_token("reference") - small.by_token("current")
    exact = small.by_context(small.kl("current", "reference"))
    tokens, alive = small.tree.tokens, small.tree.alive
    everything = np.ones(len(tokens), dtype=np.bool_)
    second = np.arange(tokens.shape[1]) == 1
    cases = {
        "all": (everything, alive),
        "the second tokens": (everything, alive & second),
        "second tokens after a first 0": (tokens[:, 0] == 0, alive & second),
        "sequences whose second token is 0": (tokens[:, 1] == 0, alive),
        "sequences that ended by their end token": ((tokens == 2).any(axis=1), alive),
        "sequences that were cut at 3 tokens": (~(tokens == 2).any(axis=1), alive),
        "sequences that p likes more than q": (log_ratio.sum(axis=1) < 0, alive),
    }
    found = {}
    for name, (kept, counted) in cases.items():
        weight = (probability * kept)[:, None] * counted
        means = (
            float(np.sum(weight * values) / np.sum(weight))
            for values in (kb.k1(log_ratio), kb.k3(log_ratio), exact)
        )
        k1, k3, true = means
        found[name] = float(probability @ (kept & counted.any(axis=1))), k1, k3, true
    return found
