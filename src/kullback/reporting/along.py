"""What is said of a question along an axis: the table of its cells, in words."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kullback.estimation.axes import BY_TOKEN, settled
from kullback.reporting.words import counted, interval, number

NAMED = 4  # cells that a sentence names before it counts the others


def cell_heads(one: dict[str, Any], axis: str) -> tuple[str, ...]:
    """The heads of the table of a question by an axis."""
    exact = ("exact",) if any("exact" in cell["estimates"] for cell in one["by"][axis]) else ()
    return (axis, "tokens", "clusters", "KL", "interval", "k3", *exact)


def cell_rows(one: dict[str, Any], axis: str) -> list[tuple[str, ...]]:
    """A line for each cell, under ``cell_heads``."""
    return [
        (
            _name(cell),
            str(cell["tokens"]),
            str(cell["clusters"]),
            number(cell["estimates"]["auto"]["mean"]),
            interval(cell["estimates"]["auto"]),
            *(
                number(e["mean"])
                for name, e in cell["estimates"].items()
                if name in ("k3", "exact")
            ),
        )
        for cell in one["by"][axis]
    ]


def cell_caption(one: dict[str, Any], axis: str) -> str:
    """What the table shows, and what must not be read out of it."""
    cells = one["by"][axis]
    if not cells:
        return f"No token counts, so there is nothing by {axis}."
    best = cells[0]["estimates"]["auto"]
    said = [f"KL by auto in {best['unit']}."]
    intervals = sum(cell["estimates"]["auto"]["low"] is not None for cell in cells)
    if intervals:
        said.append(
            f"Each interval holds at {best['confidence']:.0%} on its own: of {intervals}, "
            f"{intervals * (1 - best['confidence']):.2g} are expected to miss."
        )
    if axis in BY_TOKEN and one["question"]["level"] != "token_mean":
        said.append("A cell holds parts of sequences, so its KL is per token.")
    if not settled(axis):
        said.append(
            f"Nothing says that {axis} was settled before the tokens were drawn: by k1 and k3 "
            "such a split is biased even for an honest sampler (selected-on-outcome), and only "
            "exact columns answer it."
        )
    return " ".join([*said, *_reasons(cells), *_marks(cells)])


def left_out(report: dict[str, Any], asked: Collection[str], by: Collection[str]) -> str:
    """A line on the tables that are not printed; empty if there are none."""
    said = []
    shown = {report["headline"]["question"], *asked}
    others = sum(one["question"]["text"] not in shown for one in report["questions"])
    if by and others:
        axes, rest = ", ".join(by), counted(others, "question")
        said.append(f"By {axes}, too, in the page and the JSON: the other {rest}.")
    split = report["questions"][0]["by"]
    more = [axis for axis in split if axis not in by and len(split[axis]) > 1]
    if more:
        axes = " and ".join(more)
        said.append(f"By {axes}: in the page and the JSON, or here with --by {','.join(more)}.")
    return " ".join(said)


def _name(cell: dict[str, Any]) -> str:
    return "not logged" if cell["name"] is None else cell["name"]


def _reasons(cells: list[dict[str, Any]]) -> list[str]:
    """Why cells have no number or no interval, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for cell in cells:
        reason = cell["estimates"]["auto"]["reason"]
        if reason is not None:
            by_reason.setdefault(reason, []).append(_name(cell))
    return [f"At {_listed(names)}: {reason}." for reason, names in by_reason.items()]


def _marks(cells: list[dict[str, Any]]) -> list[str]:
    """Which cells are marked, beside the mark that the axis gives to all."""
    by_mark: dict[str, list[str]] = {}
    for cell in cells:
        for mark in cell["estimates"]["auto"]["marks"]:
            if mark != "selected-on-outcome":
                by_mark.setdefault(mark, []).append(_name(cell))
    return [
        f"Marked {mark}: {'every cell' if len(names) == len(cells) else _listed(names)}."
        for mark, names in by_mark.items()
    ]


def _listed(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
