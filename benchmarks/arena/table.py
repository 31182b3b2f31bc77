"""The results as a page: by family, the worst of its cells; and every cell."""

from __future__ import annotations

import math
import platform
import statistics
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from score import METHODS, row

import kullback

WORST = 5
SAID = ("regret", "coverage")
LOW = 0.9  # what an interval of 95 % should not fall below
# The worst regret that no rule can avoid, by how many times noisier k1 is than k3: it cannot tell
# a hole that was not sampled from noise. tests/estimation/test_tapered.py has the game.
UNAVOIDABLE = {1.0: 1.0, 3.0: 1.34, 7.0: 1.59, 14.0: 1.85, 28.0: 2.11, 100.0: 2.60}
NOTES = """Errors, biases and widths are relative to the KL. *Regret* is the root mean squared error
over the exact smaller one of k1 and k3 (`benchmarks/arena/exact.py`; to first order where lengths
are random). *Bound*, where k1 is noisier than k3: no rule that sees sampled tokens alone has less
regret both here and at the worst pair with a hole that looks like this one. *Too high* is the share
of samples whose 95 % interval lies above the truth, *too low* below it. The binomial error of a
coverage of 0.95 is {error:.3f}. Of the real pairs the exact error of k3 is over the whole
vocabulary, and much of it lies where none of 488,448 draws went."""
HEAD = (
    "cell", "KL", "clusters", "method", "error / KL", "bias / KL", "regret", "bound",
    "coverage 95 %", "coverage 90 %", "too high", "too low", "width / KL",
)  # fmt: skip


def write_table(found: Iterable[dict[str, Any]], path: Path, seeds: int) -> None:
    """Write the page."""
    measured = [one for one in found if one["sums"]]
    least = min(int(one["sums"]["k1"]["seeds"]) for one in measured)
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    made_with = f"Python {platform.python_version()}, {versions}, kullback {kullback.__version__}"
    parts = [
        "# The arena",
        f"`python benchmarks/arena --seeds {seeds}` ({made_with}); at least {least} seeds in each\n"
        f"of {len(measured)} cells.",
        NOTES.format(error=(0.95 * 0.05 / least) ** 0.5),
        _overall(measured),
        f"## The {WORST} worst cells of auto, by coverage",
        _lines((one, "auto") for one in worst(measured, "coverage")),
        f"## The {WORST} worst cells of auto, by regret",
        _lines((one, "auto") for one in worst(measured, "regret")),
        "![How often the intervals hold](coverage.png)",
        "![Error over that of the better one](regret.png)",
        "## The worst of each family, by coverage",
        _lines(_worst_of_each(measured)),
        "## Every cell",
        _lines((one, method) for one in measured for method in METHODS),
    ]
    text = "\n\n".join(parts) + "\n"
    path.write_text(text, encoding="utf-8")


def _worst_of_each(measured: list[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], str]]:
    for family in dict.fromkeys(one["family"] for one in measured):
        mine = [one for one in measured if one["family"] == family]
        for method in METHODS:
            yield min(mine, key=lambda one: row(one, method)["coverage"]), method


def worst(measured: Iterable[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """The worst cells of auto: of the least ``coverage``, or of the largest ``regret``."""
    sign = 1 if what == "coverage" else -1
    return sorted(measured, key=lambda one: sign * row(one, "auto")[what])[:WORST]


def unavoidable(cell: dict[str, Any]) -> float:
    """The worst regret that no rule can avoid; NaN where k1 is not the noisier one."""
    k1, k3 = (cell["exact"][method] for method in ("k1", "k3"))
    if k3 is None or k1 is None or not k1 > k3:
        return math.nan
    places = np.log(list(UNAVOIDABLE))
    return float(np.interp(math.log(k1 / k3), places, list(UNAVOIDABLE.values())))


def _overall(measured: list[dict[str, Any]]) -> str:
    """The median and the largest regret of each method, and how often its interval fails."""
    said = []
    for method in METHODS:
        regrets, held = ([row(one, method)[what] for one in measured] for what in SAID)
        said.append(
            f"- **{method}**: regret {statistics.median(regrets):.3g} in the median cell, at most "
            f"{max(regrets):.3g}; coverage below {LOW:.0%} in {sum(x < LOW for x in held)} cells."
        )
    return "\n".join(said)


def _lines(rows: Iterable[tuple[dict[str, Any], str]]) -> str:
    lines = [line(HEAD), line(["---"] * len(HEAD))]
    for cell, method in rows:
        said, bound = row(cell, method), unavoidable(cell)
        lines.append(
            line(
                [f"{cell['family']}: {cell['name']}", f"{cell['truth']:.3g}", str(cell["clusters"]),
                 method, f"{said['rmse']:.3g}", f"{said['bias']:+.2g}", f"{said['regret']:.3g}",
                 f"{bound:.2f}" if method == "auto" and bound == bound else "–",
                 f"{said['coverage']:.3f} ± {said['coverage_error']:.3f}",
                 f"{said['coverage_90']:.3f}", f"{said['too_high']:.3f}", f"{said['too_low']:.3f}",
                 f"{said['width']:.3g}"]
            )
        )  # fmt: skip
    return "\n".join(lines)


def line(cells: Iterable[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"
