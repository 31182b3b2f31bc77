"""How terms are spread over tokens and sequences, as data for tables and figures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.estimation.histogram import Histogram
from kullback.estimation.question_state import QuestionState
from kullback.formulas.k_family import k1, k2, k3

BARS = 25  # of the sequences, about
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # times a power of ten: widths of bars that people can read


def per_token(state: QuestionState) -> dict[str, dict[str, float]]:
    """How k1, k2 and k3 are spread over the sampled tokens, without any weight."""
    table, count = state.log_q_over_p, max(state.tokens, 1)
    spread = {}
    for name, formula in (("k1", k1), ("k2", k2), ("k3", k3)):
        mean = state.total(f"raw_{name}") / count
        square = state.product(f"raw_{name}", f"raw_{name}") / count
        p50, p95, p99 = table.quantiles((0.5, 0.95, 0.99), formula)
        low, high = _ends(table, formula)
        spread[name] = {
            "mean": mean,
            "std": math.sqrt(max(square - mean * mean, 0.0)),
            "p50": p50,
            "p95": p95,
            "p99": p99,
            "min": low,
            "max": high,
            "negative_share": table.negative_share_of_k1 if name == "k1" else 0.0,
        }
    return spread


def octaves(state: QuestionState) -> list[dict[str, float]]:
    """Tokens by their k1 without any weight, in powers of two, each bin with its sum of k3.

    Most log-ratios are tiny and a few are large; bins of one width would show only one of the two.
    """
    table = state.log_q_over_p
    edges = table.octaves()
    if not len(edges):
        return []
    with np.errstate(over="ignore"):  # k3 of a log r above 709: no number, and none is shown
        rows = zip(-edges[1:], -edges[:-1], table.filed(edges), table.filed(edges, k3), strict=True)
    bins = [{"low": a, "high": b, "tokens": n, "k3": s} for a, b, n, s in rows]
    return bins[::-1]  # k1 = −log r rises where log r falls


def per_sequence(state: QuestionState) -> dict[str, Any]:
    """The KL of each sequence by k1: where most lie, and how far the others go."""
    table = state.of_sequences
    p1, p5, p50, p95, p99 = table.quantiles((0.01, 0.05, 0.5, 0.95, 0.99), lambda x: x)
    edges = even_edges(p1, p99)
    told = {"p5": p5, "p50": p50, "p95": p95, "min": table.low, "max": table.high}
    if not len(edges):
        return told | {"below": 0, "above": 0, "bins": []}
    rows = zip(edges[:-1], edges[1:], table.filed(edges), strict=True)
    return told | {
        "below": int(table.filed(np.array([-np.inf, edges[0]])).sum()),
        "above": int(table.filed(np.array([edges[-1], np.inf])).sum()),
        "bins": [{"low": a, "high": b, "sequences": n} for a, b, n in rows],
    }


def even_edges(low: float, high: float) -> NDArray[np.float64]:
    """Edges of about 25 equal bars with round ends that hold both; none where they are equal.

    Example:
        >>> edges = even_edges(-0.011, 0.05)
        >>> len(edges), [round(float(edge), 6) for edge in edges[[0, 1, -1]]]
        (27, [-0.0125, -0.01, 0.0525])
    """
    wide = high - low  # a width that float64 cannot part into bars is none
    if not max(1e-12 * max(abs(low), abs(high)), 1e-300) < wide < math.inf:
        return np.zeros(0)
    power = 10.0 ** math.floor(math.log10(wide / BARS))
    step = next(power * one for one in STEPS if power * one * BARS >= wide)
    first, last = math.floor(low / step), math.floor(high / step)
    return step * np.arange(first, last + 2, dtype=np.float64)


def _ends(table: Histogram, formula: Any) -> tuple[float, float]:
    """Exact ends: k1 is monotone in log r, k2 and k3 fall towards 0 from both sides."""
    at = [x for x in (table.low, table.below, table.above, table.high) if math.isfinite(x)]
    values = [float(formula(x)) for x in at] or [math.nan]
    return min(values), max(values)
