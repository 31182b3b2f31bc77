"""Were log-ratios clamped before they were logged? Then many stand at one limit, none beyond."""

from __future__ import annotations

import math

import numpy as np

from kullback.estimation.clamp_state import End
from kullback.estimation.histogram import Histogram
from kullback.estimation.summary import Summary
from kullback.question import Question

FEWEST_TIES = 5  # log-ratios at one end; below, chance may put them there
FEWEST_ONE_SIDED = 20  # likewise, where the other end is none
PILED = 4.0  # times as many as in each of the bins beside must stand at an end
BESIDE = 8  # bins, of about half a per cent each
FEWEST_BINS = 50  # that hold something; a small world has few values, and many at the largest
ALIKE = 1e-3  # relative difference of the two ends that rounding may leave
ROUND = 1e-5  # relative difference to a number of two digits, likewise


def clamped_at(summary: Summary, question: Question) -> tuple[End, ...]:
    """The limits at which the log-ratios of a question were clamped before they were logged."""
    state, table = summary.clamps[question], summary.questions[question].log_q_over_p
    if max(state.low.ties, state.high.ties) < FEWEST_TIES:
        return ()
    rounded = all(summary.columns[role].bfloat16 for role in (question.p, question.q))
    if rounded or np.count_nonzero(table.counts) < FEWEST_BINS:
        return ()
    ends = tuple(end for end in (state.low, state.high) if _piled(table, end))
    if len(ends) == 2 and abs(state.low.value + state.high.value) <= ALIKE * state.high.value:
        return ends
    return tuple(end for end in ends if end.ties >= FEWEST_ONE_SIDED and _is_round(end.value))


def _piled(table: Histogram, end: End) -> bool:
    """Whether far more values stand at an end than close to it."""
    bits = int(np.float32(end.value).view(np.uint32)) >> 16  # larger sizes have larger bits
    beside = table.counts[max(bits - 1 - BESIDE, 0) : bits - 1]
    return end.ties >= FEWEST_TIES and end.ties > PILED * (1 + float(beside.mean()))


def _is_round(end: float) -> bool:
    """Whether the limit, or the ratio at it, is a number of two digits."""
    with np.errstate(over="ignore"):
        candidates = (abs(end), float(np.exp(end)))
    return any(
        abs(one - float(f"{one:.1e}")) <= ROUND * one for one in candidates if 0 < one < math.inf
    )
