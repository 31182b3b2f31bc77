"""What a sample says of the shape of its pair: whether k3 can be trusted at this size."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.estimation.auto import independent_units
from kullback.estimation.interval import FEWEST_EFFECTIVE, ratio_error, skewed_reach
from kullback.estimation.question_state import QuestionState
from kullback.estimation.rungs_state import FEWEST_SAMPLED, ROW

ALPHA = 0.005  # of each of the two ways to see a hole that is not there
T = 2.58  # its normal quantile
FEWEST_HELD = 1000  # positions with an exact KL; k3 at fewer is too skewed to be held against it
FEW_RATIOS = 10  # so often sampled at most, their count is taken for what it is


class ShapeEvidence(NamedTuple):
    """What of S = χ²/(2J) and of holes shows in sampled tokens; NaN where nothing can be told.

    Args:
        verdict: ``holes``: k3 is too low, or hangs on a few ratios; ``smooth``: k3 errs less than
            k1; ``cannot-tell``.
        missing: k1 − k3 = 1 − mean(q/s), q's mass that the sample lacks; or exact − k3. On average
            it is 0 if s sampled.
        least: That it is at least, 99.5 % of the time; positive where a hole was not sampled.
        most: That it is at most, 97.5 % of the time: what may be hidden.
        S_least: That S is at least, given how often ratios as large as the largest were sampled.
        error_k1: Clustered standard error of the mean of k1.
        error_k3: That of k3, from what was sampled.
        against: What k3 was held against: ``k1``, or ``exact``, which has much less noise.
    """

    verdict: str
    missing: float
    least: float
    most: float
    S_least: float
    error_k1: float
    error_k3: float
    against: str


NAN = float("nan")
NOTHING_SEEN = ShapeEvidence("cannot-tell", NAN, NAN, NAN, NAN, NAN, NAN, "k1")


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what overflows says nothing
def shape_evidence(state: QuestionState) -> ShapeEvidence:
    """Weigh the evidence for and against holes, per token.

    Two things show a hole: mass of q that was not sampled (k1 − k3 is positive beyond its
    skewed noise), and sampled ratios so large that χ² exceeds 2J even at its lower limit. Nothing
    in sampled tokens shows that there is none. An exact KL does, at every position or at a
    thousand: k3 is held against it, and where its own error and all that it may lack are together
    less than the error of k1, it errs less at this size.

    The verdict is about errors at this number of tokens and clusters. It speaks of the pair only
    if the sampler sampled: a wrong one looks like a hole.
    """
    from scipy.special import stdtrit

    k1, k3, sizes = (state.by_group(term) for term in ("k1", "k3", "tokens"))
    if state.effective_clusters() < FEWEST_EFFECTIVE or len(sizes) < 2:
        return NOTHING_SEEN
    held = _held_against(state)
    errors = [ratio_error(*one) for one in ((held.above, held.sizes), (k1, sizes), (k3, sizes))]
    if not np.isfinite(errors).all():
        return NOTHING_SEEN
    error, error_k1, error_k3 = errors
    missing = float(held.above.sum() / held.sizes.sum())

    def limit(alpha: float, *, upward: bool) -> float:
        t = -float(stdtrit(held.effective - 1, alpha))
        # r − 1 is skewed upward, and by chance far too low: which looks like missing mass.
        reach = skewed_reach(held.above, held.sizes, t, upward=upward) * error
        return missing + reach if upward else missing - reach

    least, most = limit(ALPHA, upward=False), limit(0.025, upward=True)
    shape = _least_shape(state, state.effective_clusters())
    verdict = "cannot-tell"
    if least > 0 or shape > 1:
        verdict = "holes"
    elif held.name == "exact" and math.hypot(max(most, 0.0), error_k3) < error_k1:
        verdict = "smooth"
    return ShapeEvidence(verdict, missing, least, most, shape, error_k1, error_k3, held.name)


class _Held(NamedTuple):
    """What should be k3 on average, less k3, by cluster; and how sure that can be."""

    name: str
    above: NDArray[np.float64]
    sizes: NDArray[np.float64]
    effective: float


def _held_against(state: QuestionState) -> _Held:
    """The exact KL where it is known at enough positions, else k1."""
    k1, k3, sizes = (state.by_group(term) for term in ("k1", "k3", "tokens"))
    effective = state.effective_clusters()
    if state.total("exact_tokens") == state.tokens:
        return _Held("exact", state.by_group("exact") - k3, sizes, effective)
    sums, known = state.rungs.groups.over(state.groups), state.rungs.groups.effective(ROW["known"])
    if state.rungs.total("known") >= FEWEST_HELD and known >= FEWEST_SAMPLED:
        lacking = sums[ROW["known_exact"]] - sums[ROW["known_k3"]]
        return _Held("exact", lacking, sums[ROW["known"]], known)
    return _Held("k1", k1 - k3, sizes, effective)


def _least_shape(state: QuestionState, effective: float) -> float:
    """A lower limit of S = χ²/(2J), from how often which ratios were sampled; at tokens of p alone.

    The better of two. Where many large ratios were sampled: the lower limit of the mean of
    (r − 1)², whose heavy tail makes it too low, not too high. Where a few were: Garwood's lower
    limit for the probability of ratios above any of them, all taken to be as small as that one.
    """
    from scipy.special import gammaincinv

    log_r, counts = state.log_q_over_p.filled()
    if state.question.weight != "none" or not len(log_r):
        return math.nan
    order = np.argsort(-log_r)
    log_r, shares = log_r[order], counts[order] / counts.sum()
    growth, seen = np.expm1(log_r), np.cumsum(counts[order])
    squares, gaps = growth**2, growth * log_r  # whose means are χ² and J
    chi2, jeffreys = float((shares * squares).sum()), float((shares * gaps).sum())
    if not jeffreys > 0:
        return math.nan
    spread = float((shares * (squares - chi2) ** 2).sum())
    of_many = (chi2 - T * math.sqrt(spread / independent_units(state, effective))) / (2 * jeffreys)
    few = (seen <= FEW_RATIOS) & (log_r > 0)
    rate = gammaincinv(seen[few], ALPHA / FEW_RATIOS) / counts.sum()
    rest = jeffreys - np.cumsum(shares * gaps)[few]
    of_few = rate * squares[few] / (2 * (rest + rate * gaps[few]))
    return max(of_many, float(of_few.max(initial=0.0)))
