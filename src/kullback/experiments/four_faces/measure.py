"""Four outcomes: the divergences, what one sample says of them, and how unlikely a mean below 0 is.

The distributions are recovered from the terms that the document prints: 0.49 log(0.49/0.02) and
2 (0.25) log 25 name all probabilities of p and of the broad candidate, and that outcomes 2, 3 and 4
give a negative k1 puts the narrow one's peak on outcome 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import kullback as kb

P = np.array([0.49, 0.01, 0.01, 0.49])
BROAD = np.array([0.25, 0.25, 0.25, 0.25])
NARROW = np.array([0.02, 0.02, 0.02, 0.94])
LOGGED = -0.031  # the mean that the document's training loop prints
DRAWS = 500_000

Values = NDArray[np.float64]

# One sample's value at each outcome, for x ~ p against the narrow candidate.
LOG_RATIO = np.log(NARROW / P)
K1: Values = kb.k1(LOG_RATIO)
K3: Values = kb.k3(LOG_RATIO)
NEGATIVE = float(np.sum(P[K1 < 0]))


def kl(p: Values, q: Values) -> float:
    """KL(p‖q)."""
    return float(kb.divergence(p, q))


def variance(values: Values) -> float:
    """Of one sample's value, for x ~ p."""
    return float(P @ (values - P @ values) ** 2)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A mean of draws, the exact one, and how many exact standard errors they are apart."""

    mean: float
    exact: float
    z: float


def draw(values: Values, seed: int) -> Drawn:
    """The mean of a value of each outcome over draws of p."""
    drawn = np.random.default_rng(seed).choice(len(P), size=DRAWS, p=P)
    mean, exact = float(np.mean(values[drawn])), float(P @ values)
    return Drawn(mean, exact, (mean - exact) / float(np.sqrt(variance(values) / DRAWS)))


def chance_of_mean(most: float, tokens: int) -> float:
    """P(mean of k1 ≤ most) over independent draws of p, exactly.

    Of the first outcome n are drawn, of the inner ones m, of the last the rest: at given n the mean
    falls with m, so that a tail of m is asked for.
    """
    from scipy.stats import binom

    first, inner, _, last = K1
    n = np.arange(tokens + 1)
    rest = tokens - n
    # n · first + m · inner + (rest − m) · last ≤ most · tokens, and inner < last.
    least = np.ceil((n * first + rest * last - most * tokens) / (last - inner) - 1e-9)
    inside = (P[1] + P[2]) / (1 - P[0])
    return float(np.sum(binom.pmf(n, tokens, P[0]) * binom.sf(least - 1, rest, inside)))


def chance_between_normals(most: float, tokens: int, kl: float) -> float:
    """P(mean of k1 ≤ most) for normal policies a shift apart, whose k1 is N(KL, 2 KL)."""
    from scipy.stats import norm

    return float(norm.cdf((most - kl) * np.sqrt(tokens / (2 * kl))))


def bound(most: float, tokens: int) -> float:
    """What no honest sampler exceeds: the product of q/p has mean 1 at most, whatever depends."""
    return float(np.exp(min(0.0, most * tokens)))


def first_below(level: float) -> int:
    """The number of tokens from which the bound of the logged mean is below a level."""
    return int(np.ceil(np.log(level) / LOGGED))


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A whole, its two parts, and what is left of it."""

    whole: float
    part: float
    divergence: float

    @property
    def left(self) -> float:
        """What rounding leaves."""
        return self.whole - self.part - self.divergence


def cross_entropy(q: Values) -> Decomposed:
    """H(p, q) = H(p) + KL(p‖q)."""
    return Decomposed(float(-P @ np.log(q)), float(kb.entropy(log_probs=np.log(P))), kl(P, q))


# A latent variable of four values whose posterior at the observed x is p.
PRIOR = np.full(4, 0.25)
LIKELIHOOD = np.array([0.98, 0.02, 0.02, 0.98])


def evidence(q: Values) -> Decomposed:
    """Log p(x) = ELBO(q) + KL(q‖posterior), the ELBO summed by its definition."""
    joint = PRIOR * LIKELIHOOD
    total = float(np.sum(joint))
    elbo = float(q @ (np.log(joint) - np.log(q)))
    return Decomposed(float(np.log(total)), elbo, kl(q, joint / total))
