"""What stands beside or on the dials: fits at a few orders without turning, and words over bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kullback.reporting.curves import TURNS
from kullback.reporting.figures import Figure, Row

LOW = 130


def panels(
    title: str, target: Sequence[Row], fits: Mapping[str, Sequence[Row]], note: str
) -> Figure:
    """The target in grey, and over it a fit for each panel.

    Args:
        title: The finding.
        target: ``x``, ``value``.
        fits: The same of a fit, by the name of its panel.
        note: What must not be read out of it.
    """
    every = (*target, *(row for rows in fits.values() for row in rows))
    most = max(row["value"] for row in every)
    shared = {
        "x": {"field": "x", "type": "quantitative", "title": None},
        "y": {"field": "value", "type": "quantitative", "title": None,
              "scale": {"domain": [0, most]}, "axis": {"tickCount": 3}},
    }  # fmt: skip

    def layer(rows: Sequence[Row], mark: Mapping[str, Any]) -> dict[str, Any]:
        return {"data": {"values": list(rows)}, "mark": dict(mark), "encoding": shared}

    grey = {"type": "area", "color": "var(--dim)", "opacity": 0.35}
    line = {"type": "line", "color": "var(--blue)", "strokeWidth": 2.5}
    views = []
    for name, rows in fits.items():
        words = {"text": name, "color": "var(--ink)", "fontSize": 13, "anchor": "start"}
        views.append(
            {"height": LOW, "title": words, "layer": [layer(target, grey), layer(rows, line)]}
        )
    rows = [{"name": name, **row} for name, fit in fits.items() for row in fit]
    heads = {"name": "", "x": "x", "value": "density of the fit"}
    return Figure(title, heads, rows, {"height": LOW, "concat": views}, note)


def written(rows: Sequence[Row]) -> dict[str, Any]:
    """Words over the bars of ``groups`` that turn with them: a layer of that view.

    Args:
        rows: ``at``, ``name`` of the outcome, ``top`` of its bars, ``said`` and its ``color``.
    """
    return {
        "data": {"values": list(rows)},
        "transform": TURNS,
        "mark": {"type": "text", "dy": -8, "fontSize": 12, "fontWeight": "bold"},
        "encoding": {
            "x": {"field": "name", "type": "nominal"},
            "y": {"field": "top", "type": "quantitative"},
            "text": {"field": "said"},
            "color": {"field": "color", "type": "nominal", "scale": None},
        },
    }
