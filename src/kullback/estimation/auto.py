"""The default estimate: a tapered k_λ, with an interval that reckons with what was not sampled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.estimation.interval import (
    FEWEST_EFFECTIVE,
    NOTHING,
    Interval,
    ratio_error,
    skewed_reach,
)
from kullback.estimation.question_state import QuestionState
from kullback.estimation.tapered import Tapered, tapered
from kullback.estimation.unseen import MOST, allowance, unseen_mass

UNSEEN_SHARE = 0.2  # of the lower tail's α: that more than the allowance hides
ROUNDING = 1e-12  # of a mean: a spread below is none
TAPER_SHARE = 0.1  # of the same: that noise alone takes the taper for a hole


class Auto(NamedTuple):
    """The default estimate of a state.

    Args:
        interval: The mean, its ends and its error.
        lam: The coefficient of r − 1 in the mean: 0 is k1, 1 is k3.
        unseen: p's mass, at most, of outcomes with a larger r than all that were sampled.
    """

    interval: Interval
    lam: float
    unseen: float


def auto(
    state: QuestionState,
    k1: NDArray[np.float64],
    k3: NDArray[np.float64],
    sizes: NDArray[np.float64],
    *,
    effective: float,
    confidence: float,
) -> Auto:
    """The tapered k_λ of a state with an interval whose ends come from different estimators.

        low  = m_λ − t' se(m_λ) − allowance(unseen mass, λ),   high = k1 + t' se(k1)

    Holes of p that were not sampled make k1 too high and k3 too low. So the lower end is that of
    k_λ, less what can hide from it; and the upper end is k1's. Student's t is widened for
    skewness (``skewed_reach``), and low ≤ mean ≤ high. The lower end leans on the taper only where
    noise alone takes it for a hole in less than a tenth of its α. It is not below 0 unless the
    mean is. There is no upper end without an assumption: log p/q on what was not sampled is
    taken to be no larger than on what was.

    Args:
        state: The sums of one question.
        k1: Sums of k1 by cluster, at its level, or of another unbiased form.
        k3: The same with a control whose mean is 0.
        sizes: The sizes of the clusters.
        effective: Effective number of clusters.
        confidence: Nominal coverage.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows has no interval
        found = tapered(k1, k3, sizes, effective=effective)
        mean = float(found.above.sum() / sizes.sum()) if sizes.sum() > 0 else np.nan
        errors = [ratio_error(one, sizes) for one in (found.above, k1)] if len(k1) > 1 else [np.nan]
    if not np.isfinite(mean):
        return Auto(NOTHING, found.lam, NOTHING.mean)
    if effective < FEWEST_EFFECTIVE or not np.isfinite(errors).all():
        return Auto(NOTHING._replace(mean=mean), found.lam, NOTHING.mean)
    tail = (1 - confidence) / 2
    unseen = _unseen(state, effective, tail)
    scale = state.tokens / sizes.sum() if state.question.level == "sequence_sum" else 1.0
    low = _low(found, sizes, effective, tail, unseen, scale)
    high = _high(found, k1, sizes, effective, tail)
    low = min(max(low, 0.0) if mean >= 0 else low, mean)
    return Auto(Interval(mean, low, max(high, mean), errors[0]), found.lam, unseen)


def _low(
    found: Tapered,
    sizes: NDArray[np.float64],
    effective: float,
    tail: float,
    unseen: float,
    scale: float,
) -> float:
    from scipy.special import ndtri, stdtrit

    t = -float(stdtrit(effective - 1, tail * (1 - UNSEEN_SHARE)))

    def end(above: NDArray[np.float64], lam: float) -> float:
        reach = skewed_reach(above, sizes, t, upward=False) * ratio_error(above, sizes)
        return float(above.sum() / sizes.sum()) - reach - scale * allowance(unseen, lam)

    low = end(found.above, found.lam)
    if found.lam != found.full and found.disagreement < -float(ndtri(tail * TAPER_SHARE)):
        return min(low, end(found.untapered, found.full))
    return low


def _high(
    found: Tapered,
    k1: NDArray[np.float64],
    sizes: NDArray[np.float64],
    effective: float,
    tail: float,
) -> float:
    """k1's end; where k1 lies far below the mean, a hole was hit too often, at least the mean's."""
    from scipy.special import stdtrit

    t = -float(stdtrit(effective - 1, tail))
    return max(
        float(above.sum() / sizes.sum())
        + skewed_reach(above, sizes, t, upward=True) * ratio_error(above, sizes)
        for above in (k1, found.above)
    )


def _unseen(state: QuestionState, effective: float, tail: float) -> float:
    """What p can have that was not sampled.

    Under a third sampler its mass counts as often as the largest weight.
    """
    bound = unseen_mass(independent_units(state, effective), tail * UNSEEN_SHARE)
    weighted = state.question.weight != "none" and np.isfinite(state.weight_max)
    return min(bound * max(state.weight_max, 1.0), MOST) if weighted else bound


def independent_units(state: QuestionState, effective: float) -> float:
    """So many independent tokens say as much: the tokens over the design effect.

    That is how many times the variance of k1 by cluster is that of independent tokens.

    Args:
        state: The sums of one question.
        effective: Effective number of clusters; there are never fewer units.
    """
    tokens = state.total("tokens")
    mean = state.total("k1") / tokens
    independent = (state.product("k1", "k1") / tokens - mean * mean) / tokens
    clustered = ratio_error(state.by_group("k1"), state.by_group("tokens")) ** 2
    # Cells keep no products, and where nothing varies there is no design effect: no more units
    # than clusters.
    varies = clustered > (ROUNDING * mean) ** 2 and np.isfinite(independent)
    return max(tokens * min(1.0, independent / clustered), effective) if varies else effective
