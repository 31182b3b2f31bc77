"""What is kept of the estimates of one cell: sums that add, and what follows from them."""

from __future__ import annotations

import math
from typing import Any

import kullback as kb
from kullback.estimation.estimate import from_state
from kullback.estimation.question_state import QuestionState

METHODS = ("auto", "k1", "k3")
LEVELS = (0.95, 0.9)
KEPT = ("seeds", "error", "square", "below", "above", "below_90", "above_90", "width", "none")


def scored(columns: kb.Columns, question: kb.Question, truth: float) -> dict[str, dict[str, float]]:
    """By method, what one sample adds to each sum of ``KEPT``."""
    state = QuestionState.of(columns, question)
    return {name: _one(state, name, truth) for name in METHODS}


def _one(state: QuestionState, method: str, truth: float) -> dict[str, float]:
    wide, narrow = (from_state(state, method, level) for level in LEVELS)
    off = wide.mean - truth
    kept = dict.fromkeys(KEPT, 0.0) | {"seeds": 1.0, "error": off, "square": off * off}
    if math.isnan(wide.low):
        return kept | {"none": 1.0}
    return kept | {
        "below": float(truth < wide.low),
        "above": float(truth > wide.high),
        "below_90": float(truth < narrow.low),
        "above_90": float(truth > narrow.high),
        "width": wide.high - wide.low,
    }


def added(a: dict[str, dict[str, float]], b: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The sums of both."""
    return {
        name: {key: a.get(name, {}).get(key, 0.0) + one[key] for key in KEPT}
        for name, one in b.items()
    }


def row(cell: dict[str, Any], method: str) -> dict[str, float]:
    """What a cell says of a method.

    ``regret`` is its root mean squared error over the exact smaller one of k1 and k3; coverage and
    its binomial error are of the 95 and 90 % intervals, width is relative to the KL.
    """
    sums, truth = cell["sums"][method], cell["truth"]
    seeds = sums["seeds"]
    covered = (
        1 - (sums["below"] + sums["above"] + sums["none"]) / seeds
    )  # no interval holds nothing
    best = min(error for error in cell["exact"].values() if error is not None)
    return {
        "seeds": seeds,
        "rmse": math.sqrt(sums["square"] / seeds) / truth,
        "bias": sums["error"] / seeds / truth,
        "regret": math.sqrt(sums["square"] / seeds) / best,
        "coverage": covered,
        "coverage_error": math.sqrt(max(covered * (1 - covered), 1 / seeds) / seeds),
        "coverage_90": 1 - (sums["below_90"] + sums["above_90"] + sums["none"]) / seeds,
        "too_high": sums["below"] / seeds,
        "too_low": sums["above"] / seeds,
        "width": sums["width"] / max(seeds - sums["none"], 1) / truth,
        "none": sums["none"] / seeds,
    }
