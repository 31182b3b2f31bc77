"""The results as a page: by family, the worst of its cells; and every cell."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from score import METHODS, row

import kullback

WORST = 5
NOTES = """Errors, biases and widths are relative to the KL. *Regret* is the root mean squared error
over the exact smaller one of k1 and k3 (`benchmarks/arena/exact.py`; to first order where lengths
are random). *Too high* is the share of samples whose 95 % interval lies above the truth, *too low*
below it. The binomial error of a coverage of 0.95 is {error:.3f}. Of the real pairs the exact error
of k3 is over the whole vocabulary, and much of it lies where none of 488,448 draws went."""
HEAD = (
    "cell", "KL", "clusters", "method", "error / KL", "bias / KL", "regret", "coverage 95 %",
    "coverage 90 %", "too high", "too low", "width / KL",
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
        "![How often the intervals hold](coverage.png)",
        "![Error over that of the better one](regret.png)",
        "## The worst of each family, by coverage",
        _lines(_worst_of_each(measured)),
        f"## The {WORST} worst of all: coverage, then regret, of auto",
        _lines(_worst(measured)),
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


def _worst(measured: list[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], str]]:
    by_coverage = sorted(measured, key=lambda one: row(one, "auto")["coverage"])
    by_regret = sorted(measured, key=lambda one: -row(one, "auto")["regret"])
    return [(one, "auto") for one in (*by_coverage[:WORST], *by_regret[:WORST])]


def _lines(rows: Iterable[tuple[dict[str, Any], str]]) -> str:
    lines = [_line(HEAD), _line(["---"] * len(HEAD))]
    for cell, method in rows:
        said = row(cell, method)
        lines.append(
            _line(
                [f"{cell['family']}: {cell['name']}", f"{cell['truth']:.3g}", str(cell["clusters"]),
                 method, f"{said['rmse']:.3g}", f"{said['bias']:+.2g}", f"{said['regret']:.3g}",
                 f"{said['coverage']:.3f} ± {said['coverage_error']:.3f}",
                 f"{said['coverage_90']:.3f}", f"{said['too_high']:.3f}", f"{said['too_low']:.3f}",
                 f"{said['width']:.3g}"]
            )
        )  # fmt: skip
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
