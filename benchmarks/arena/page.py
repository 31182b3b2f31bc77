"""The tables of docs/which-estimator.md and docs/intervals.md, from the results of the arena.

    python benchmarks/arena/page.py

What stands between ``<!-- arena: NAME -->`` and ``<!-- arena: end -->`` is written by this file.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from score import METHODS, row
from table import LOW, line, worst

Cells = list[dict[str, Any]]
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "arena" / "cells.jsonl"
PAGES = [ROOT / "docs" / name for name in ("which-estimator.md", "intervals.md")]
MARKED = re.compile(r"(<!-- arena: (?!end)(\w+) -->\n).*?(<!-- arena: end -->)", re.DOTALL)
FAR = 0.3  # nats per token: the policies are no longer close
FEW = 32  # prompts are few
BETTER = 0.9  # times the largest regret of auto, or another estimator is not worth its risk
COLUMNS = 110
KINDS = {
    "gaussian scale": "actions with another spread",
    "hole": "policies with dropped tokens",
    "diffuse holes": "policies with dropped tokens",
    "three-valued holes": "policies with dropped tokens",
    "drift with few holes": "policies with dropped tokens",
    "peaked with holes": "policies with dropped tokens",
    "holes in the reference": "tokens that the reference nearly forbids",
    "peaked": "peaked policies",
    "third sampler": "a third policy sampled",
    "heavy lengths": "heavy-tailed lengths",
    "real": "real pairs of SmolLM2",
}
SMOOTH = ("gaussian shift", "smooth twin", "drift")
PROMPTS = ("prompt effects", "prompts with holes", "differing ends")


def kind(cell: dict[str, Any]) -> str:
    """What a cell stands for, in plain words."""
    if cell["family"] in SMOOTH:
        return "policies far apart" if cell["truth"] >= FAR else "close policies"
    if cell["family"] in PROMPTS:
        return (
            "few prompts of differing KL"
            if cell["clusters"] <= FEW
            else "many prompts of differing KL"
        )
    return KINDS[cell["family"]]


def values(cells: Cells, method: str, what: str) -> list[float]:
    """One number of each cell by a method."""
    return [row(cell, method)[what] for cell in cells]


def kinds(found: Cells) -> str:
    """For each kind of pair: what to take, regret, coverage, width."""
    by_kind: dict[str, Cells] = {}
    for cell in found:
        by_kind.setdefault(kind(cell), []).append(cell)
    regrets, holds = ([f"{what}: {m}" for m in METHODS] for what in ("regret", "holds"))
    lines = [line(("kind of pair", "take", *regrets, *holds, "width"))]
    lines.append(line(["---"] * (3 + 2 * len(METHODS))))
    for name, cells in by_kind.items():
        off = [values(cells, method, "regret") for method in METHODS]
        held = [values(cells, method, "coverage") for method in METHODS]
        wide = [row(cell, "auto")["width"] / row(cell, "k1")["width"] for cell in cells]
        lines.append(
            line(
                [name, advice(cells)]
                + [f"{_times(statistics.median(one))} ({_times(max(one))})" for one in off]
                + [f"{_percent(statistics.median(one))} ({_percent(min(one))})" for one in held]
                + [_times(statistics.median(wide))]
            )
        )
    return "\n".join(lines)


def advice(cells: Cells) -> str:
    """Auto, and what is clearly better where the kind is certain; from where on its interval holds.

    Another is better if its largest regret is a tenth below that of auto and its interval holds as
    well as it should in every cell.
    """

    def largest(method: str) -> float:
        return max(values(cells, method, "regret"))

    if min(values(cells, "auto", "coverage")) < LOW:
        short = max(cell["clusters"] for cell in cells if row(cell, "auto")["coverage"] < LOW)
        enough = [cell["clusters"] for cell in cells if cell["clusters"] > short]
        return f"auto, from {min(enough)} prompts on" if enough else "better data"
    better = [
        method
        for method in METHODS
        if largest(method) <= BETTER * largest("auto")
        and min(values(cells, method, "coverage")) >= LOW
    ]
    return f"auto; {min(better, key=largest)} if certain" if better else "auto"


def overall(found: Cells) -> str:
    """What is said of all cells together."""
    most = {method: _times(max(values(found, method, "regret"))) for method in METHODS}
    least = min(cell["sums"]["k1"]["seeds"] for cell in found)
    said = (
        f"Over all {len(found)} cells the median regret of auto is "
        f"{_times(statistics.median(values(found, 'auto', 'regret')))} and the largest "
        f"{most['auto']}; the largest of k1 is {most['k1']}, of k3 {most['k3']}. Each cell was "
        f"drawn {least:.0f} times or more."
    )
    return textwrap.fill(said, COLUMNS)


def worst_cells(found: Cells) -> str:
    """The cells in which the interval of auto holds least often, by name."""
    heads = ("cell", "what it is", "KL", "prompts", *[f"holds: {m}" for m in METHODS])
    lines = [line(heads), line(["---"] * len(heads))]
    for cell in worst(found, "coverage"):
        told = [f"`{cell['name']}`", kind(cell), f"{cell['truth']:.2g}", str(cell["clusters"])]
        held = [f"{row(cell, m)['coverage']:.1%}".replace("%", " %") for m in METHODS]
        lines.append(line(told + held))
    return "\n".join(lines)


def held(found: Cells) -> str:
    """By method, in how many cells the interval holds too seldom."""
    heads = (
        "the 95 % interval of", f"holds in less than {LOW:.0%} of samples in".replace("%", " %"),
        "at worst in", "in the median cell in",
    )  # fmt: skip
    lines = [line(heads), line(["---"] * len(heads))]
    for method in METHODS:
        shares = values(found, method, "coverage")
        low = sum(share < LOW for share in shares)
        ends = [f"{one:.1%}".replace("%", " %") for one in (min(shares), statistics.median(shares))]
        lines.append(line([method, f"{low} of {len(shares)} cells", *ends]))
    return "\n".join(lines)


PARTS: dict[str, Callable[[Cells], str]] = {
    "kinds": kinds,
    "overall": overall,
    "worst": worst_cells,
    "held": held,
}


def filled(text: str, found: Cells) -> str:
    """A page with its marked parts written anew."""
    return MARKED.sub(lambda one: f"{one[1]}\n{PARTS[one[2]](found)}\n\n{one[3]}", text)


def recorded(lines: Iterable[str]) -> Cells:
    """The cells of which something was drawn."""
    return [cell for cell in map(json.loads, lines) if cell["sums"]]


def _times(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _percent(share: float) -> str:
    return str(math.floor(100 * share))  # down: 89.9 is not yet 90


def main() -> None:
    """Write the pages."""
    found = recorded(RESULTS.read_text(encoding="utf-8").splitlines())
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
