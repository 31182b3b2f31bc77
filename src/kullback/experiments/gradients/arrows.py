"""Gradients drawn as arrows in the plane in which their length and angle are the true ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, pi, sin
from typing import Any

from kullback.reporting.curves import TURNS
from kullback.reporting.figures import STYLES, Figure, Row

ALONG = "along the true gradient (its length = 1)"
ACROSS = "across it"
ORIGIN = {"x2": {"datum": 0}, "y2": {"datum": 0}}
LOW, TOP = 120, 1.2  # of three beside each other: a unit is about as high as it is wide
NARROW = "along the true gradient"  # where three stand beside each other


SIZES = (260, 130, 110, 90)  # of the tips, so that one shows behind another


def arrows(
    rows: Sequence[Row], ends: tuple[float, float], top: float = 1.0, x: str = ALONG
) -> dict[str, Any]:
    """Arrows from the origin: a view to set beside a ``dial``, or beside others.

    Args:
        rows: ``series``, ``along``, ``across``; ``at`` as well, where a dial turns them.
        ends: Of the axis along the true gradient.
        top: Of the axis across it.
        x: The title of that axis.
    """
    names = list(dict.fromkeys(row["series"] for row in rows))
    turned = TURNS if "at" in rows[0] else []
    on_x = {"field": "along", "type": "quantitative", "title": x,
            "scale": {"domain": list(ends), "nice": False}}  # fmt: skip
    on_y = {"field": "across", "type": "quantitative", "title": ACROSS,
            "scale": {"domain": [0, top], "nice": False}}  # fmt: skip
    legend = {"title": None, "columns": 3 if len(names) == 3 else 2}

    def by(which: int) -> dict[str, Any]:
        scale = {"domain": names, "range": [style[which] for style in STYLES[: len(names)]]}
        return {"field": "series", "type": "nominal", "scale": scale, "legend": legend}

    size = {"field": "size", "type": "quantitative", "scale": None, "legend": None}
    sizes = dict(zip(names, SIZES, strict=False))
    drawn = [{**row, "size": sizes[row["series"]]} for row in rows]
    tips = [{"field": "series", "type": "nominal", "title": "of"},
            *({"field": field, "type": "quantitative", "title": head, "format": ".3~f"}
              for field, head in (("along", "along"), ("across", "across")))]  # fmt: skip
    shaft = {
        "transform": turned,
        "mark": {"type": "rule", "strokeWidth": 3},
        "encoding": {"x": on_x, "y": on_y, **ORIGIN, "color": by(0)},
    }  # fmt: skip
    tip: dict[str, Any] = {
        "transform": turned,
        "mark": {"type": "point", "filled": True, "opacity": 1},
        "encoding": {"x": on_x, "y": on_y, "color": by(0), "size": size,
                     "tooltip": tips},
    }  # fmt: skip
    if not turned:  # beside a dial, whose colors are its own, shapes would be a second legend
        tip["encoding"]["shape"] = by(1)
    return {"data": {"values": drawn}, "layer": [*_true(on_x, on_y), shaft, tip]}


def _true(on_x: Mapping[str, Any], on_y: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The true gradient, and the arc of all that are as long."""
    arc = [{"turn": i, "along": cos(i * pi / 60), "across": sin(i * pi / 60)} for i in range(61)]
    dashed = {"type": "line", "color": "var(--dim)", "strokeWidth": 1, "strokeDash": [2, 2],
              "clip": True}  # fmt: skip
    round_it = {"x": on_x, "y": on_y, "order": {"field": "turn", "type": "quantitative"}}
    once = {"data": {"values": [{"along": 1.0, "across": 0.0}]}}
    shaft = {"x": on_x, "y": on_y, **ORIGIN}
    text = {"type": "text", "align": "left", "dx": 9, "dy": -12, "color": "var(--ink)",
            "text": "true"}  # fmt: skip
    tip = {"type": "point", "shape": "circle", "size": 420, "color": "var(--dim)",
           "strokeWidth": 1.5}  # fmt: skip
    return [
        {"data": {"values": arc}, "mark": dashed, "encoding": round_it},
        {**once, "mark": {"type": "rule", "color": "var(--dim)", "opacity": 0.3,
                           "strokeWidth": 9},
         "encoding": shaft},
        {**once, "mark": tip, "encoding": {"x": on_x, "y": on_y}},
        {**once, "mark": text, "encoding": {"x": on_x, "y": on_y}},
    ]  # fmt: skip


def panels(title: str, rows: Sequence[Row], ends: tuple[float, float], note: str = "") -> Figure:
    """Arrows in a panel for each name.

    Args:
        title: The finding.
        rows: ``name`` of the panel, ``series``, ``along``, ``across``, ``cosine``, ``length``,
            ``error``.
        ends: As in ``arrows``.
        note: What must not be read out of it.
    """
    heads = {"name": "", "series": "of", "cosine": "cosine", "length": "length", "error": "error"}
    views = []
    for name in dict.fromkeys(row["name"] for row in rows):
        there = [row for row in rows if row["name"] == name]
        words = {"text": name, "color": "var(--ink)", "fontSize": 13, "anchor": "start"}
        views.append({"height": LOW, "title": words, **arrows(there, ends, TOP, NARROW)})
    return Figure(title, heads, rows, {"height": LOW, "concat": views}, note)
