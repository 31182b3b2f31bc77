"""The mean of clustered sums with its error: a ratio estimator and Student's interval."""

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
        spread = float(((above - mean * below) ** 2).sum())
    if not np.isfinite(mean):
        return NOTHING
    if clusters < 2 or effective < FEWEST_EFFECTIVE or not np.isfinite(spread):
        return NOTHING._replace(mean=mean)
    error = float(np.sqrt(clusters / (clusters - 1) * spread) / below.sum())
    reach = float(stdtrit(effective - 1, (1 + confidence) / 2)) * error
    return Interval(mean, mean - reach, mean + reach, error)
