"""The results as figures: by family, how often 95 % intervals hold, and the regret."""

from __future__ import annotations

import statistics
from typing import Any

from score import row

from kullback.reporting.figures import Figure, intervals

LOW = 0.9  # what an interval of 95 % should not fall below
COLORS = {"auto": "var(--green)", "k1": "var(--blue)", "k3": "var(--orange)"}


def coverage(found: list[dict[str, Any]]) -> Figure:
    """The share of samples whose interval holds the truth: median, least and most of a family."""
    rows = _rows(found, "coverage")
    bad = {m: sum(row(one, m)["coverage"] < LOW for one in found) for m in COLORS}
    title = (
        f"In {bad['k3']} of {len(found)} cells the 95 % interval around k3 holds in less than "
        f"{LOW:.0%} of samples, in {bad['k1']} that around k1, in {bad['auto']} that of auto."
    )
    note = "A point is the median cell of a family; the line reaches from its worst to its best."
    return intervals(title, rows, "share of samples", groups=COLORS, legend="method", note=note)


def regret(found: list[dict[str, Any]]) -> Figure:
    """The error over the exact smaller one of k1 and k3, by powers of ten."""
    rows = _rows(found, "regret")
    most = {m: max(row(one, m)["regret"] for one in found) for m in COLORS}
    title = (
        f"k1 is up to {most['k1']:.0f} times as far off as the better one of the two, k3 up to "
        f"{most['k3']:.0f} times, auto up to {most['auto']:.1f}."
    )
    note = (
        "Error over the exact smaller one of the two; 1 is best. k3's error in samples that saw no "
        "hole is far below its true one."
    )
    x = "root mean squared error / that of the better one"
    return intervals(title, rows, x, groups=COLORS, legend="method", wide_range=1.0, note=note)


def _rows(found: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    rows = []
    for family in dict.fromkeys(one["family"] for one in found):
        for method in COLORS:
            values = [row(one, method)[what] for one in found if one["family"] == family]
            rows.append(
                {"name": f"{family}, {method}", "group": method, "low": min(values),
                 "mean": statistics.median(values), "high": max(values)}
            )  # fmt: skip
    return rows
