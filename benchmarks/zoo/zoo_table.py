"""results/zoo in one table.

python benchmarks/zoo/zoo_table.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from claims import OF_MEASURES
from comparing import agreement
from environments import ENVIRONMENTS
from reading import Found, clamps, gradient, nearest, part, value, weight

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "zoo"
HEADS = (
    "entry", "used as", "value", "level", "descends, on-policy", "with an older sampler",
    "with another engine's tokens", "held", "as said before",
)  # fmt: skip
TOP = """# What released KL terms compute, and what training with them descends

Made by `make zoo` from the files beside this one; the code ran unmodified, as released on PyPI.
Probed by `kb.audit.probe`: on every sequence of two small languages, exactly. `current` is the
policy that is trained, `reference` (in distillation the teacher) the other, `old` the policy
before the update, `rollout` the engine. A gradient "none" is that of no divergence; of a term in
the reward it is that with the reward to go. "held": where the term (output), its log-ratio (input)
or its weight is constant, by the ratio of the second policy to the first. "as said before": whether
an earlier reading of the sources, with measurements on one token (`benchmarks/zoo/claims.py`), said
the same; if not, who is right.
"""


def results() -> dict[str, Any]:
    """By framework."""
    return {
        name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in ENVIRONMENTS
        if (RESULTS / f"{name}.json").is_file()
    }


def line(cells: Iterable[str]) -> str:
    """A row; a bar in a cell would end it."""
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    return text.replace("||", "‖").replace("|", "\\|") or " "


def descends(entry: Found, scenario: str) -> str:
    """A gradient in a cell."""
    if entry["used"] == "metric":
        return "—"
    return gradient(entry, scenario) + part(entry, scenario) + nearest(entry, scenario)


def row(framework: str, name: str, entry: Found) -> str:
    """One entry."""
    level = entry["probe"]["value"]["level"] if "probe" in entry else "—"
    ways = [descends(entry, scenario) for scenario in ("on-policy", "stale", "engine")]
    if entry["used"] == "reward":  # how the trainer then weighs it is not in the term
        ways[1:] = ["", ""]
    told = f"{name}: {entry['settings']}" if entry["settings"] else name
    what = [told, entry["used"], value(entry) + weight(entry), level.replace("_", " ")]
    return line([*what, *ways, clamps(entry), agreement(framework, name, entry)])


def section(framework: str, result: dict[str, Any]) -> list[str]:
    """One framework."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    where: dict[str, None] = {}
    for entry in result["entries"].values():
        where[
            f"`{entry['where']}`" + (" (its `self` stood in for)" * (entry["called"] == "method"))
        ] = None
    lines = [f"## {framework}", "", f"{versions}.", "", f"Ran: {'; '.join(where)}.", ""]
    lines += [line(HEADS), line(["---"] * len(HEADS))]
    lines += [row(framework, name, entry) for name, entry in result["entries"].items()]
    for name, measure in result["measures"].items():
        lines += ["", f"**{name}** (`{measure['where']}`). {measure['words']}", ""]
        lines += numbers(measure["numbers"])
        if before := OF_MEASURES.get(framework, {}).get(name):
            lines += ["", f"Said before: {before[0]} As said: {before[1]}".replace("||", "‖")]
    return [*lines, ""]


def numbers(found: dict[str, Any]) -> list[str]:
    """Measured numbers: single ones in a line, rows in a table."""
    single = {name: one for name, one in found.items() if name != "rows"}
    lines = []
    if single:
        told = (f"{name.replace('||', '‖')} {one:.4f}" for name, one in single.items())
        lines += ["; ".join(told) + "."]
    if rows := found.get("rows"):
        heads = list(rows[0])
        lines += [""] * bool(single)
        lines += [line(head.replace("_", " ") for head in heads), line("---" for _ in heads)]
        lines += [line(_number(one[head]) for head in heads) for one in rows]
    return lines


def _number(of: float | str) -> str:
    return of if isinstance(of, str) else f"{of:.4g}"


def table(found: dict[str, Any]) -> str:
    """The whole file."""
    lines = [TOP]
    for framework, result in found.items():
        lines += section(framework, result)
    return "\n".join(lines).rstrip() + "\n"


def write() -> None:
    """Write results/zoo/table.md."""
    (RESULTS / "table.md").write_text(table(results()), encoding="utf-8")


if __name__ == "__main__":
    write()
