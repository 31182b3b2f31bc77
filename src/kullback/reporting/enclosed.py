"""Figures that enclose something: the gap between two lines, and closed curves in a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kullback.reporting.curves import TURNS
from kullback.reporting.figures import HEIGHT, Figure, Row

SIDE = 300  # pixels of a plane, as wide as high where there is room


def gap(
    title: str, rows: Sequence[Row], x: str, y: str, names: tuple[str, str, str], note: str
) -> Figure:
    """Two lines and, shaded, what lies between them; the pointer reads all three.

    Args:
        title: The finding.
        rows: ``at``, ``low``, ``high`` and ``between``.
        x: The axis.
        y: What the lines measure.
        names: Of the lower line, the higher one, and what lies between.
        note: What must not be read out of it.
    """
    low, high, between = names
    heads = {"at": x, "low": low, "high": high, "between": between}
    colors = dict(zip(names, ("var(--blue)", "var(--orange)", "var(--green)"), strict=True))
    on_x = {"field": "at", "type": "quantitative", "title": x, "axis": {"format": "~g"},
            "scale": {"nice": False}}  # fmt: skip

    def part(mark: dict[str, Any], name: str, **encoding: Any) -> dict[str, Any]:
        return {"mark": mark, "encoding": {"x": on_x, "color": _named(name, colors)} | encoding}

    def on_y(field: str) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "title": y}

    line = {"type": "line", "strokeWidth": 2.5}
    near = {"type": "point", "fields": ["at"], "on": "pointermove", "nearest": True,
            "clear": "pointerout"}  # fmt: skip
    seen = {"condition": {"param": "near", "empty": False, "value": 0.7}, "value": 0}
    tips = [_tip(field, head) for field, head in heads.items()]
    reading = {
        "params": [{"name": "near", "select": near}],
        "mark": {"type": "rule", "color": "var(--ink)"},
        "encoding": {"x": on_x, "opacity": seen, "tooltip": tips},
    }
    layers = [
        part({"type": "area", "opacity": 0.3}, between, y=on_y("low"), y2={"field": "high"}),
        part(line, low, y=on_y("low")),
        part(line, high, y=on_y("high")),
        reading,
    ]
    return Figure(title, heads, rows, {"height": HEIGHT, "layer": layers}, note)


def plane(
    turned: Sequence[Row], x: str, y: str, colors: Mapping[str, str], half: float
) -> dict[str, Any]:
    """Closed curves around 0, equal scales on both axes: a view to set beside a ``dial``.

    Args:
        turned: ``at``, ``series``, ``x``, ``y`` and ``order``, the place along the curve.
        x: One axis.
        y: The other.
        colors: The color of each series, in the order of the legend; the first is filled.
        half: Each axis goes from −half to half.
    """
    scale = {"domain": [-half, half], "nice": False}
    shared = {
        field: {"field": field, "type": "quantitative", "title": title, "scale": scale}
        for field, title in (("x", x), ("y", y))
    }
    shared["color"] = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(colors), "range": list(colors.values())},
        "legend": {"title": None, "columns": 1, "labelLimit": 300},
    }
    first = next(iter(colors))
    closed = {"type": "line", "strokeWidth": 2.5, "clip": True}
    filled = closed | {"fill": colors[first], "fillOpacity": 0.25}
    layers = [
        {
            "transform": [{"filter": {"field": "series", "equal": name}}, *TURNS],
            "mark": filled if name == first else closed,
            "encoding": shared | {"order": {"field": "order"}},
        }
        for name in colors
    ]
    center = {"mark": {"type": "point", "shape": "cross", "color": "var(--ink)", "filled": True},
              "data": {"values": [{"x": 0, "y": 0}]},
              "encoding": {field: shared[field] for field in ("x", "y")}}  # fmt: skip
    data = {"values": list(turned)}
    return {"width": SIDE, "height": SIDE, "data": data, "layer": [*layers, center]}


def _named(name: str, colors: Mapping[str, str]) -> dict[str, Any]:
    scale = {"domain": list(colors), "range": list(colors.values())}
    return {"datum": name, "type": "nominal", "scale": scale,
            "legend": {"title": None, "columns": 1, "labelLimit": 300}}  # fmt: skip


def _tip(field: str, title: str) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "title": title, "format": ".4~g"}
