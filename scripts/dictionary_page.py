"""The tables of docs/which-number-did-my-trainer-log.md, from kullback.dictionary.

    python scripts/dictionary_page.py

What stands between ``<!-- logged: NAME -->`` and ``<!-- logged: end -->`` is written by this file.
"""

from __future__ import annotations

import re
from pathlib import Path

from kullback.dictionary import FRAMEWORKS, METRICS, Metric

PAGE = Path(__file__).parents[1] / "docs" / "which-number-did-my-trainer-log.md"
MARKED = re.compile(r"(<!-- logged: (?!end)(\w+) -->\n).*?(<!-- logged: end -->)", re.DOTALL)
HEADS = ("logged as", "number", "mean", "below 0?", "training on it descends", "known")
_ESTIMATES = ("k1", "k2", "k3", "abs", "exact")


def line(cells: tuple[str, ...]) -> str:
    """One row of a table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def number(one: Metric) -> str:
    """What it is, shortly."""
    if one.method not in _ESTIMATES:
        return one.formula_text
    kind = {"abs": "|log r| of ", "exact": "exact "}.get(one.method, f"{one.method} of ")
    said = f"{kind}KL({one.p}‖{one.q})"
    said += f" × {one.weight}" if one.weight else ""
    sampled = f", {one.sampler} sampled" if one.sampler != one.p else ""
    held = ", clamped" if one.clamp else ""
    return f"{'**minus** ' if one.sign < 0 else ''}{said}{sampled}{held}"


def row(one: Metric) -> tuple[str, ...]:
    """A metric with its defaults."""
    called = ", ".join(f"`{name}`" for name in one.names)
    trainer = f" ({one.trainer})" if one.trainer else ""
    below = "on average" if one.sign < 0 else ("yes" if one.can_be_negative else "no")
    descends = one.gradient.replace("||", "‖") or "–"
    return (f"{called}{trainer}", number(one), one.aggregation, below, descends, one.verified)


def all_rows() -> str:
    """A table for each framework."""
    parts = []
    for framework in FRAMEWORKS:
        own = [one for one in METRICS if one.framework == framework]
        versions = sorted({one.version for one in own if not one.until})
        lines = [f"### {framework}", "", f"As of {', '.join(versions)}.", "", line(HEADS)]
        lines += [line(("---",) * len(HEADS)), *(line(row(one)) for one in own)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def shared() -> str:
    """The names that several frameworks have, and what each means by them."""
    meant: dict[str, dict[str, list[str]]] = {}
    for one in METRICS:
        if one.method in _ESTIMATES and not one.until:
            for name in dict.fromkeys(full.rpartition("/")[2].lower() for full in one.names):
                said = number(one)
                who = f"{one.framework} `{one.name}`" if "/" in one.name else one.framework
                meant.setdefault(name, {}).setdefault(said, []).append(who)
    lines = [line(("name", "number", "logged by")), line(("---",) * 3)]
    for name, kinds in sorted(meant.items(), key=lambda one: -len(one[1])):
        projects = {who.split()[0] for whose in kinds.values() for who in whose}
        if len(kinds) > 1 and len(projects) > 1:
            lines += [
                line((f"`{name}`", said, ", ".join(dict.fromkeys(whose))))
                for said, whose in kinds.items()
            ]
    return "\n".join(lines)


PARTS = {"shared": shared, "all": all_rows}


def filled(text: str) -> str:
    """A page with its marked parts written anew."""
    return MARKED.sub(lambda one: f"{one[1]}\n{PARTS[one[2]]()}\n\n{one[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
