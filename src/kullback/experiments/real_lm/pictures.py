"""Pictures of eight pairs: a ridge for each, clouds of prefixes, and errors of a chosen pair."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kullback.reporting.figures import HEIGHT, Figure, Row

RIDGE = 40  # pixels of a ridge
PARAMETER = "pair"
CHOSEN = [{"filter": f"datum.name == {PARAMETER}"}]
COLORS = {
    "k1": "var(--orange)",
    "k2": "var(--purple)",
    "k3": "var(--blue)",
    "Rao-Blackwell": "var(--green)",
    "auto (dots)": "var(--ink)",
}
DASHES = ([6, 3], [8, 3, 2, 3], [1, 0], [2, 2], [1, 0])


def ridges(title: str, rows: Sequence[Row], marks: Sequence[Row], x: str, note: str) -> Figure:
    """A histogram for each name, below each other along one axis by powers of ten.

    Args:
        title: The finding.
        rows: ``name``, ``low``, ``high``, ``share``; no bin has 1 inside.
        marks: ``name`` and ``value``, one of each name, to set as a point.
        x: What is counted by.
        note: What must not be read out of it.
    """
    names = list(dict.fromkeys(row["name"] for row in rows))
    heads = {"name": "pair", "low": "from", "high": "to", "share": "share of prefixes"}
    base = f"{len(names) - 1} - indexof({json.dumps(names, ensure_ascii=False)}, datum.name)"
    tops = [
        {"calculate": base, "as": "base"},
        {"joinaggregate": [{"op": "max", "field": "share", "as": "most"}], "groupby": ["name"]},
        {"calculate": "datum.base + 0.88 * datum.share / datum.most", "as": "top"},
    ]
    labels = f"{json.dumps(names[::-1], ensure_ascii=False)}[datum.value]"
    on_x = {"type": "quantitative", "title": x, "scale": {"type": "log", "nice": False},
            "axis": _powers([row[end] for row in rows for end in ("low", "high")])}  # fmt: skip
    on_y = {"type": "quantitative", "title": None,
            "scale": {"domain": [0, len(names)], "nice": False},
            "axis": {"values": list(range(len(names))), "labelExpr": labels, "ticks": False,
                     "labelOverlap": False, "tickCount": len(names),
                     "labelBaseline": "bottom", "domain": False}}  # fmt: skip
    side = {"condition": {"test": "datum.low >= 0.999", "value": "var(--orange)"},
            "value": "var(--blue)"}  # fmt: skip
    bars = {
        "transform": tops,
        "mark": {"type": "rect"},
        "encoding": {"x": on_x | {"field": "low"}, "x2": {"field": "high"},
                     "y": on_y | {"field": "base"}, "y2": {"field": "top"}, "color": side,
                     "tooltip": [_tip(field, head) for field, head in heads.items()]},
    }  # fmt: skip
    points = {
        "data": {"values": list(marks)},
        "transform": tops[:1],
        "mark": {"type": "point", "shape": "diamond", "size": 90, "filled": True,
                 "opacity": 1, "yOffset": -5},
        "encoding": {"x": on_x | {"field": "value"}, "y": on_y | {"field": "base"},
                     "color": {"value": "var(--ink)"},
                     "tooltip": [_tip("name", "pair"), _tip("value", "S of all prefixes")]},
    }  # fmt: skip
    layers = [bars, *_border("x", 1.0, "S = 1"), points]
    return Figure(title, heads, rows, {"height": RIDGE * len(names), "layer": layers}, note)


def cloud(title: str, rows: Sequence[Row], x: str, y: str, *, start: str, note: str) -> Figure:
    """Points of all names, those of the one that is chosen from a list in color.

    Args:
        title: The finding.
        rows: ``name``, ``at`` and ``value``; the axes go by powers of ten.
        x: What ``at`` is.
        y: What ``value`` is; above 1 points have another color.
        start: The name that is chosen first.
        note: What must not be read out of it.
    """
    heads = {"name": "pair", "at": x, "value": y}
    place = {
        field: {"field": key, "type": "quantitative", "title": head,
                "scale": {"type": "log", "nice": False, "padding": 6},
                "axis": _powers([row[key] for row in rows])}
        for field, key, head in (("x", "at", x), ("y", "value", y))
    }  # fmt: skip
    color = {"condition": {"test": "datum.value > 1", "value": "var(--orange)"},
             "value": "var(--blue)"}  # fmt: skip
    tips = [_tip(field, head) for field, head in heads.items()]
    dots = {"type": "point", "filled": True, "clip": True}
    layers = [
        {"mark": dots | {"size": 10, "opacity": 0.3, "color": "var(--dim)"}, "encoding": place},
        *_border("y", 1.0, "above: k1 is less noisy"),
        {"transform": CHOSEN, "mark": dots | {"size": 34, "opacity": 0.75},
         "encoding": place | {"color": color, "tooltip": tips}},
    ]  # fmt: skip
    spec = {"height": HEIGHT * 4 // 3, "params": [_list(rows, start)], "layer": layers}
    return Figure(title, heads, rows, spec, note)


def errors(title: str, rows: Sequence[Row], x: str, y: str, *, start: str, note: str) -> Figure:
    """Lines of the pair that is chosen from a list; points where something was drawn.

    Args:
        title: The finding.
        rows: ``name``, ``at``, ``series`` (of ``COLORS``), ``value``; both axes by powers of ten.
        x: What ``at`` is.
        y: What ``value`` is.
        start: The name that is chosen first.
        note: What must not be read out of it.
    """
    heads = {"name": "pair", "at": x, "series": "of", "value": y}
    sizes = sorted({row["at"] for row in rows})
    powers = _powers([row["value"] for row in rows])
    legend = {"title": None, "columns": 3, "labelLimit": 300, "symbolType": "stroke"}
    scale = {"domain": list(COLORS), "range": list(COLORS.values())}
    by = {"field": "series", "type": "nominal"}
    on = {
        "x": {"field": "at", "type": "quantitative", "title": x,
              "scale": {"type": "log", "nice": False, "padding": 12},
              "axis": {"values": sizes, "tickCount": len(sizes), "format": "~g", "grid": False}},
        "y": {"field": "value", "type": "quantitative", "title": y, "scale": {"type": "log"},
              "axis": powers},
        "color": by | {"scale": scale, "legend": legend},
    }  # fmt: skip
    dashes = by | {"scale": {"domain": list(COLORS), "range": DASHES}, "legend": legend}
    is_drawn = "datum.series == 'auto (dots)'"
    near = {"type": "point", "fields": ["at"], "on": "pointermove", "nearest": True,
            "clear": "pointerout"}  # fmt: skip
    seen = {"condition": {"param": "near", "empty": False, "value": 0.7}, "value": 0}
    reading = {
        "params": [{"name": "near", "select": near}],
        "transform": [{"pivot": "series", "value": "value", "groupby": ["at"]}],
        "mark": {"type": "rule", "color": "var(--ink)"},
        "encoding": {"x": on["x"], "opacity": seen,
                     "tooltip": [_tip("at", x), *(_tip(name, name) for name in COLORS)]},
    }  # fmt: skip
    layers = [
        {"transform": [{"filter": f"!({is_drawn})"}], "mark": {"type": "line", "strokeWidth": 2.5},
         "encoding": on | {"strokeDash": dashes}},
        {"transform": [{"filter": is_drawn}],
         "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1}, "encoding": on},
        reading,
    ]  # fmt: skip
    spec = {"height": HEIGHT * 4 // 3, "params": [_list(rows, start)], "transform": CHOSEN,
            "layer": layers}  # fmt: skip
    return Figure(title, heads, rows, spec, note)


def _list(rows: Sequence[Row], start: str) -> dict[str, Any]:
    names = list(dict.fromkeys(row["name"] for row in rows))
    bind = {"input": "select", "options": names, "name": f"{PARAMETER} "}
    return {"name": PARAMETER, "value": start, "bind": bind}


def _powers(values: Sequence[float]) -> dict[str, Any]:
    """Ticks at powers of ten, every second one where they are many."""
    low, high = min(values), max(values)
    powers = [n for n in range(-12, 13) if low <= float(f"1e{n}") <= high]
    values = [float(f"1e{n}") for n in powers if n % (1 + len(powers) // 8) == 0]
    # Vega leaves out of the values what is beyond tickCount.
    return {"values": values, "tickCount": len(values), "format": "~g", "labelSeparation": 8}


def _border(axis: str, at: float, label: str) -> list[dict[str, Any]]:
    """A dashed line and its name."""
    once = {"data": {"values": [{}]}}
    place = {axis: {"datum": at, "type": "quantitative"}}
    rule = {"type": "rule", "color": "var(--ink)", "strokeDash": [4, 3]}
    along = {"x": ({"y": {"value": 0}}, "left"), "y": ({"x": {"value": 0}}, "left")}
    end, align = along[axis]
    text = {"type": "text", "align": align, "baseline": "bottom", "text": label, "dx": 5,
            "color": "var(--ink)"}  # fmt: skip
    text |= {"dy": -3} if axis == "y" else {"baseline": "top", "dy": 2}
    return [{**once, "mark": rule, "encoding": place},
            {**once, "mark": text, "encoding": place | end}]  # fmt: skip


def _tip(field: str, title: str) -> dict[str, Any]:
    if field == "name":
        return {"field": field, "type": "nominal", "title": title}
    form = ".2~%" if field == "share" else ".4~g"
    return {"field": field, "type": "quantitative", "title": title, "format": form}
