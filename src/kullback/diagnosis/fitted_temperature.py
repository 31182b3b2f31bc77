"""The temperature at which tokens were drawn, from the likelihoods within their heads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray

from kullback.estimation.tempered_state import (
    EXPONENTS,
    FIRSTS,
    NODES,
    NORMALIZERS,
    RAW,
    TemperedState,
)

SHIFT_LEFT = 0.04  # share of the shift of first draws that a temperature may leave unexplained
ERRORS_LEFT = 3.0  # or so many standard errors
LOG_EXPONENTS = np.log(EXPONENTS)
FINE = np.linspace(LOG_EXPONENTS[0], LOG_EXPONENTS[-1], 4001)


@dataclass(frozen=True, slots=True)
class Fit:
    """The likeliest temperature of a sampler within its own heads.

    Args:
        temperature: Maximum of the likelihood.
        error: Its standard error, the larger of the clustered one and the model's.
        gain: Log-likelihood there less that at 1, in nats.
        count: Tokens in heads of two entries or more.
        first: The share of the likeliest token among them.
        expected: That share at this temperature.
        fits: Whether the temperature explains the share of the likeliest token.
        extreme: Whether the likelihood is largest at an end of the grid; then the temperature is
            that end, and its error is not known.
    """

    temperature: float
    error: float
    gain: float
    count: int
    first: float
    expected: float
    fits: bool
    extreme: bool


def log_likelihoods(state: TemperedState) -> NDArray[np.float64]:
    """By β of ``EXPONENTS``, less that at β = 1, in nats."""
    sums = state.groups.sums.sum(axis=1)
    found = EXPONENTS * state.by_group("chosen").sum() - sums[NORMALIZERS]
    return found - found[RAW]


def rounding(state: TemperedState, relative: float, absolute: float) -> NDArray[np.float64]:
    """The most that rounding can add to each of ``log_likelihoods``, in nats.

    An error of ε in each log-prob moves log p(x)^β / Σ p^β by 2βε at most. ``relative`` is to the
    size of the log-probs, for which those of the token drawn and of the likeliest stand.
    """
    each = relative * state.by_group("depth").sum() / 2 + absolute * state.by_group("inside").sum()
    return np.where(EXPONENTS == 1, 0.0, 2 * (EXPONENTS + 1)) * each


def fitted(state: TemperedState) -> Fit | None:
    """The likeliest temperature; None where nothing is known.

    Σ log Σ p^β is analytic in β: through its values at twelve β goes a polynomial in log β, whose
    derivatives hold the temperature to a few parts in a thousand.
    """
    filled = state.by_group("inside") > 0
    sums, count = state.groups.sums[:, filled], int(state.by_group("inside").sum())
    if not count or not np.isfinite(sums).all():
        return None
    first, chosen = state.by_group("first")[filled], state.by_group("chosen")[filled]
    gains = log_likelihoods(state)
    node = int(gains.argmax())
    if node in (0, NODES - 2, NODES - 1):
        return Fit(
            temperature=float(1 / EXPONENTS[node]),
            error=np.nan,
            gain=float(gains[node]),
            count=count,
            first=float(first.sum()) / count,
            expected=float(sums[FIRSTS][node].sum()) / count,
            fits=False,
            extreme=True,
        )
    normalizer = polynomial.polyfit(LOG_EXPONENTS, sums[NORMALIZERS], NODES - 1)
    total = normalizer.sum(axis=1)
    heights = np.exp(FINE) * chosen.sum() - polynomial.polyval(FINE, total)
    u = float(FINE[heights.argmax()])
    beta = float(np.exp(u))
    slope, curve = (polynomial.polyval(u, polynomial.polyder(normalizer, m)) for m in (1, 2))
    score, info = chosen - slope / beta, float((curve - slope).sum()) / beta**2
    if info <= 0:
        return None
    groups = len(chosen)
    spread = float(np.sqrt((score**2).sum() * groups / max(groups - 1, 1)))
    firsts = polynomial.polyfit(LOG_EXPONENTS, sums[FIRSTS], NODES - 1)
    expected = np.asarray(polynomial.polyval(u, firsts), dtype=np.float64)
    return Fit(
        temperature=1 / beta,
        error=max(spread, float(np.sqrt(info))) / info / beta**2,
        gain=float(heights.max() - (chosen.sum() - polynomial.polyval(0.0, total))),
        count=count,
        first=float(first.sum()) / count,
        expected=float(expected.sum()) / count,
        fits=_fits(first, expected, score, float(sums[FIRSTS][RAW].sum())),
        extreme=False,
    )


def _fits(
    first: NDArray[np.float64],
    expected: NDArray[np.float64],
    score: NDArray[np.float64],
    raw: float,
) -> bool:
    """Whether the temperature explains how often the likeliest token was drawn.

    A cut, or other weights, raise that share and the likelihood in another proportion.
    """
    left = first - expected
    if (squares := float((score**2).sum())) > 0:  # what the fit has moved is no evidence
        left = left - score * float((score * left).sum()) / squares
    noise = ERRORS_LEFT * float(np.sqrt((left**2).sum()))
    moved = SHIFT_LEFT * abs(float(first.sum()) - raw)
    return abs(float((first - expected).sum())) <= max(noise, moved)
