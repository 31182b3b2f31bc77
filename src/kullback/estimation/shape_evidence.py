"""What a sample says of the shape of its pair: which of k1 and k3 errs less at this size."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kullback.estimation.auto import independent_units
from kullback.estimation.interval import FEWEST_EFFECTIVE, ratio_error, skewed_reach
from kullback.estimation.question_state import QuestionState

ALPHA = 0.005  # of each of the two ways to see a hole that is not there
T = 2.58  # its normal quantile
FEW_RATIOS = 10  # so often sampled at most, their count is taken for what it is


class ShapeEvidence(NamedTuple):
    """What of S = χ²/(2J) and of holes shows in sampled tokens; NaN where nothing can be told.

    Args:
        verdict: ``holes``: k1 errs less than k3; ``smooth``: k3 errs less; ``cannot-tell``.
        missing: 1 − mean(q/s): q's mass that the sample lacks, on average 0 if s sampled.
        least: That it is at least, 99.5 % of the time; positive where a hole was not sampled.
        most: That it is at most, 97.5 % of the time: what may be hidden.
        S_least: That S is at least, given how often ratios as large as the largest were sampled.
        error_k1: Clustered standard error of the mean of k1.
        error_k3: That of k3, from what was sampled.
    """

    verdict: str
    missing: float
    least: float
    most: float
    S_least: float
    error_k1: float
    error_k3: float


NOTHING_SEEN = ShapeEvidence("cannot-tell", *[float("nan")] * 6)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what overflows says nothing
def shape_evidence(state: QuestionState) -> ShapeEvidence:
    """Weigh the evidence for and against holes, per token.

    Two things show a hole: mass of q that was not sampled (k1 − k3 is positive beyond its
    skewed noise), and sampled ratios so large that χ² exceeds 2J even at its lower limit. Nothing
    in sampled tokens shows that there is none. But where k3's own error and all that may be
    missing are together less than the error of k1, k3 errs less at this size, hole or not.

    The verdict is about errors at this number of tokens and clusters. It speaks of the pair only
    if the sampler sampled: a wrong one looks like a hole.
    """
    from scipy.special import stdtrit

    k1, k3, sizes = (state.by_group(term) for term in ("k1", "k3", "tokens"))
    effective, control = state.effective_clusters(), k3 - k1
    errors = (
        [ratio_error(sums, sizes) for sums in (control, k1, k3)] if len(sizes) > 1 else [math.nan]
    )
    if effective < FEWEST_EFFECTIVE or not np.isfinite(errors).all():
        return NOTHING_SEEN
    error, error_k1, error_k3 = errors
    missing = float(-control.sum() / sizes.sum())

    def limit(alpha: float, *, upward: bool) -> float:
        t = -float(stdtrit(effective - 1, alpha))
        # A control that is skewed upward can be far too low by chance, which looks like a hole.
        reach = skewed_reach(control, sizes, t, upward=upward) * error
        return missing - reach if upward else missing + reach

    least, most = limit(ALPHA, upward=True), limit(0.025, upward=False)
    shape = _least_shape(state, effective)
    verdict = "cannot-tell"
    if least > 0 or shape > 1:
        verdict = "holes"
    elif math.hypot(max(most, 0.0), error_k3) < error_k1:
        verdict = "smooth"
    return ShapeEvidence(verdict, missing, least, most, shape, error_k1, error_k3)


def _least_shape(state: QuestionState, effective: float) -> float:
    """A lower limit of S = χ²/(2J), from how often which ratios were sampled; at tokens of p alone.

    Of the better of two lower limits of χ²: that of a mean (its heavy tail makes it too low, not
    too high), and, where ratios were sampled a few times, Garwood's for their count: χ² is at
    least the probability of ratios above any, times the square of that one less 1.
    """
    from scipy.special import gammaincinv

    log_r, counts = state.log_q_over_p.filled()
    if state.question.weight != "none" or not len(log_r):
        return math.nan
    order = np.argsort(-log_r)
    log_r, counts = log_r[order], counts[order]
    tokens, growth = counts.sum(), np.expm1(log_r)
    jeffreys = float((counts * growth * log_r).sum() / tokens)
    squares = growth**2
    chi2 = float((counts * squares).sum() / tokens)
    spread = float((counts * (squares - chi2) ** 2).sum() / tokens)
    units = independent_units(state, effective)
    of_the_mean = chi2 - T * math.sqrt(spread / units)
    large, seen = squares[log_r > 0], np.cumsum(counts)[log_r > 0]
    few = seen <= FEW_RATIOS
    of_the_few = gammaincinv(seen[few], ALPHA / FEW_RATIOS) * large[few] / tokens
    least = max(of_the_mean, float(of_the_few.max(initial=0.0)))
    return least / (2 * jeffreys) if jeffreys > 0 else math.nan
