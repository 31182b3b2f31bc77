"""The mean of clustered sums with its error: a ratio, Student's interval, and one for skewness."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Interval(NamedTuple):
    """A mean, its standard error and the ends of its interval; NaN where there is none."""

    mean: float
    low: float
    high: float
    standard_error: float


FEWEST_EFFECTIVE = 1.1  # clusters; one huge one leaves Student's t no degree of freedom
NOTHING = Interval(float("nan"), float("nan"), float("nan"), float("nan"))


def ratio_error(
    above: NDArray[np.float64], below: NDArray[np.float64], *, fitted: int = 1
) -> float:
    """The standard error of Σ above / Σ below over clusters, by its linearization.

        se² = c/(c − fitted) · Σ (a − m b)² / (Σ b)²,  m = Σ a / Σ b

    Args:
        above: Sum of the values of each cluster, [clusters].
        below: Size of each cluster, [clusters].
        fitted: Numbers that were fitted to the clusters: the mean, and a coefficient if any.

    Returns:
        In the unit of the values; not finite where the squares overflow.

    Example:
        >>> ratio_error(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
        1.0
    """
    clusters, total = len(above), below.sum()
    spread = float(((above - above.sum() / total * below) ** 2).sum())
    return float(np.sqrt(clusters / max(clusters - fitted, 1) * spread) / total)


def skewed_reach(
    above: NDArray[np.float64], below: NDArray[np.float64], t: float, *, upward: bool
) -> float:
    """How many standard errors an end of the interval lies off, where the residuals are skewed.

    Hall's cubic transformation (1992, J. Roy. Stat. Soc. B 54, 221) removes the skewness g of the
    mean from Student's t; inverted, the upper end lies at

        m − se · (3/g) ((1 + g(−t − g/6))^(1/3) − 1),   g = Σ e³ / (Σ e²)^(3/2),   e = a − m b

    A single outlier (g → 1) puts it 6 standard errors away, as a count of one event has it. It is
    used to widen only: never less than t.

    Args:
        above: Sum of the values of each cluster, [clusters].
        below: Size of each cluster, [clusters].
        t: Student's quantile of this end.
        upward: Whether the upper end is meant.

    Example:
        >>> values = np.array([0.0] * 63 + [15.0])
        >>> round(skewed_reach(values, np.ones(64), 1.96, upward=True), 1)
        6.2
        >>> skewed_reach(values, np.ones(64), 1.96, upward=False)
        1.96
    """
    residuals = above - above.sum() / below.sum() * below
    # Scaled first: squares of what is tiny would vanish, and of what is huge overflow.
    largest = np.abs(residuals).max(initial=0.0)
    if not largest > 0 or not np.isfinite(largest):
        return t
    residuals = residuals / largest
    skewness = float((residuals**3).sum() / (residuals**2).sum() ** 1.5) * (1 if upward else -1)
    if abs(skewness) < 1e-6:
        return t
    moved = 1 + skewness * (-t - skewness / 6)
    return max(t, -3 / skewness * (float(np.cbrt(moved)) - 1))


def ratio_interval(
    above: NDArray[np.float64],
    below: NDArray[np.float64],
    *,
    effective: float,
    confidence: float,
) -> Interval:
    """The mean Σ above / Σ below over clusters, with Student's interval.

        m = Σ a / Σ b,  se² = c/(c − 1) · Σ (a − m b)² / (Σ b)²,  m ± t · se

    The residuals a − m b are those of the linearized ratio (Cochran 1977, ch. 6). Student's t has
    the effective number of clusters less one as its degrees of freedom. The mean can be negative
    where the terms can; low ≤ mean ≤ high always. Under few clusters or heavy tails it covers less
    than it says.

    Args:
        above: Sum of the values of each cluster, [clusters].
        below: Size of each cluster, [clusters].
        effective: Effective number of clusters.
        confidence: Between 0 and 1.

    Returns:
        In the unit of the values; NaN ends and error where there are too few clusters, all NaN
        where there is no mean.

    Example:
        >>> sums, sizes = np.array([1.0, 3.0]), np.array([1.0, 1.0])
        >>> found = ratio_interval(sums, sizes, effective=2.0, confidence=0.5)
        >>> [round(number, 6) for number in found]
        [2.0, 1.0, 3.0, 1.0]
    """
    from scipy.special import stdtrit

    clusters = len(above)
    if not below.sum() > 0:
        return NOTHING
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(above.sum() / below.sum())
        error = ratio_error(above, below)
    if not np.isfinite(mean):
        return NOTHING
    if clusters < 2 or effective < FEWEST_EFFECTIVE or not np.isfinite(error):
        return NOTHING._replace(mean=mean)
    reach = float(stdtrit(effective - 1, (1 + confidence) / 2)) * error
    return Interval(mean, mean - reach, mean + reach, error)


def widened_interval(
    above: NDArray[np.float64],
    below: NDArray[np.float64],
    *,
    effective: float,
    confidence: float,
) -> Interval:
    """As ``ratio_interval``, with each end widened where the clusters are skewed towards it.

    Example:
        >>> sums = np.array([0.0] * 63 + [64.0])
        >>> found = widened_interval(sums, np.ones(64), effective=64.0, confidence=0.95)
        >>> round(found.low, 1), found.mean, round(found.high, 1)
        (-1.0, 1.0, 7.3)
    """
    from scipy.special import stdtrit

    found = ratio_interval(above, below, effective=effective, confidence=confidence)
    if found.low != found.low:
        return found
    t = float(stdtrit(effective - 1, (1 + confidence) / 2))
    down, up = (skewed_reach(above, below, t, upward=upward) for upward in (False, True))
    low, high = found.mean - down * found.standard_error, found.mean + up * found.standard_error
    return found._replace(low=low, high=high)
