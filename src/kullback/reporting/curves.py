"""Figures over a continuous axis: curves, the area that makes a mean, and a setting to turn.

They look as those of ``figures`` do, and the pointer reads all curves at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from kullback.reporting.figures import HEIGHT, STYLES, Figure, Row

LONG = 20  # letters of a name beside which a phone has no room for another
# What keeps of the data those of the setting that is chosen.
TURNS = [{"filter": {"param": "chosen", "empty": False}}]


def curves(
    title: str,
    rows: Sequence[Row],
    x: str,
    y: str,
    *,
    log: str = "",
    marks: Mapping[float, str] | None = None,
    level: tuple[float, str] | None = None,
    note: str = "",
) -> Figure:
    """Lines along an axis; points where something was drawn at random.

    Args:
        title: The finding.
        rows: ``at``, ``series``, ``value``; ``sampled``, where there is a drawn one, or None.
        x: The axis.
        y: What is measured, with its unit.
        log: The axes that go by powers of ten: ``""``, ``"x"``, ``"y"`` or ``"xy"``.
        marks: Places on the axis to set a line at, each with its name.
        level: A height to set a line at, with its name.
        note: What must not be read out of it.
    """
    heads = {"at": x, "series": "of", "value": y}
    if any(row.get("sampled") is not None for row in rows):
        heads["sampled"] = "sampled"
    layers = _lines(rows, x, y, log)
    if "sampled" in heads:
        layers.append(_sampled(layers[0]["encoding"], rows))
    layers += _marks(marks or {}) + _level(level)
    layers.append(_reading(rows, x, log))
    return Figure(title, heads, rows, {"height": HEIGHT, "layer": layers}, note)


def areas(title: str, rows: Sequence[Row], y: str, span: tuple[float, float], note: str) -> Figure:
    """One sample's value against the share of samples that have it: the area is the mean.

    Args:
        title: The finding.
        rows: ``name`` of an outcome, ``low`` and ``high``, the shares between which it lies, and
            ``value``.
        y: What the value is, with its unit.
        span: The ends of the axis, so that two such figures can be compared.
        note: What must not be read out of it.
    """
    heads = {"name": "outcome", "share": "share of samples", "value": y, "part": "part of the mean"}
    rows = [
        {**row, "share": row["high"] - row["low"],
         "part": (row["high"] - row["low"]) * row["value"]}
        for row in rows
    ]  # fmt: skip
    color = {"condition": {"test": "datum.value < 0", "value": "var(--red)"},
             "value": "var(--green)"}  # fmt: skip
    on_x = {"field": "low", "type": "quantitative", "title": "share of samples",
            "scale": {"domain": [0, 1]}, "axis": {"format": "%"}}  # fmt: skip
    on_y = {"field": "value", "type": "quantitative", "title": y, "scale": {"domain": list(span)}}
    tips = [{"field": "name", "type": "nominal", "title": "outcome"},
            *(_tip(field, heads[field]) for field in ("share", "value", "part"))]  # fmt: skip
    bars = {
        "mark": {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 1},
        "encoding": {"x": on_x, "x2": {"field": "high"}, "y": on_y, "y2": {"datum": 0},
                     "color": color, "tooltip": tips},
    }  # fmt: skip
    wide = [row for row in rows if row["share"] > 0.1]
    text = {
        "data": {"values": [{**row, "middle": (row["low"] + row["high"]) / 2} for row in wide]},
        "mark": {"type": "text", "dy": {"expr": "datum.value < 0 ? 12 : -8"},
                 "color": "var(--ink)", "fontSize": 12},
        "encoding": {"x": on_x | {"field": "middle"}, "y": on_y, "text": {"field": "label"}},
    }  # fmt: skip
    layers = [bars, *_level((0.0, "")), text]
    return Figure(title, heads, rows, {"height": HEIGHT * 3 // 4, "layer": layers}, note)


def dial(
    title: str,
    rows: Sequence[Row],
    beside: Mapping[str, Any],
    x: str,
    y: str,
    *,
    named: str,
    start: float,
    log: str = "",
    marks: Mapping[float, str] | None = None,
    note: str = "",
) -> Figure:
    """Curves along a setting, and beside them what belongs to the setting that is chosen.

    A slider chooses it, and so does the pointer over the curves.

    Args:
        title: The finding.
        rows: ``at``, ``series``, ``value``, every series at the same settings, evenly spaced.
        beside: A view made by ``groups`` or ``profiles``; what turns in it has ``at``.
        x: The setting.
        y: What the curves measure, with its unit.
        named: The setting, as the slider calls it.
        start: The setting that is chosen first.
        log: As in ``curves``.
        marks: As in ``curves``.
        note: What must not be read out of it.
    """
    settings = sorted({row["at"] for row in rows})
    step = round(settings[1] - settings[0], 9)
    slider = {"input": "range", "min": settings[0], "max": settings[-1], "step": step,
              "name": f"{named} "}  # fmt: skip
    chosen = {
        "name": "chosen",
        "value": [{"at": start}],
        "select": {"type": "point", "fields": ["at"], "on": "pointermove", "nearest": True,
                   "clear": False, "toggle": False},
        "bind": {"at": slider},
    }  # fmt: skip
    reading = _reading(rows, x, log)
    reading["params"] = [chosen]
    reading["encoding"]["opacity"]["condition"]["param"] = "chosen"
    along = _lines(rows, x, y, log) + _marks(marks or {}) + [reading]
    views = [{"height": HEIGHT, **beside}, {"height": HEIGHT, "layer": along}]
    heads = {"at": x, "series": "of", "value": y}
    own = dict.fromkeys(("color", "strokeDash"), "independent")
    resolve = {"scale": own, "legend": own}
    spec = {"height": HEIGHT, "concat": views, "resolve": resolve}
    return Figure(title, heads, rows, spec, note)


def groups(rows: Sequence[Row], y: str, colors: Mapping[str, str]) -> dict[str, Any]:
    """Bars of named outcomes, a color for each series: a view to set beside a ``dial``.

    Args:
        rows: ``at``, ``name``, ``series``, ``value``.
        y: What the bars measure.
        colors: The color of each series, in the order of the legend.
    """
    most = max(row["value"] for row in rows)
    tips = [{"field": "series", "title": "of"}, {"field": "name", "title": "outcome"},
            _tip("value", y)]  # fmt: skip
    bar = {
        "transform": TURNS,
        "mark": {"type": "bar"},
        "encoding": {
            "x": {"field": "name", "type": "nominal", "title": None, "axis": {"labelAngle": 0}},
            "xOffset": {"field": "series", "sort": list(colors)},
            "y": {"field": "value", "type": "quantitative", "title": y,
                  "scale": {"domain": [0, most]}},
            "color": _colored(colors),
            "tooltip": tips,
        },
    }  # fmt: skip
    return {"data": {"values": list(rows)}, "layer": [bar]}


def profiles(
    fixed: Sequence[Row], turned: Sequence[Row], x: str, y: str, colors: Mapping[str, str]
) -> dict[str, Any]:
    """Densities that stay and one that turns with the setting: a view to set beside a ``dial``.

    Args:
        fixed: ``x``, ``series``, ``value`` of those that stay; the first series is filled.
        turned: The same and ``at``, of the one that turns.
        x: The axis of both.
        y: What they measure.
        colors: The color of each series, in the order of the legend.
    """
    most = max(row["value"] for row in (*fixed, *turned))
    shared = {
        "x": {"field": "x", "type": "quantitative", "title": x},
        "y": {"field": "value", "type": "quantitative", "title": y,
              "scale": {"domain": [0, most]}},
        "color": _colored(colors),
    }  # fmt: skip
    first = next(iter(colors))
    filled = [row for row in fixed if row["series"] == first]
    others = [row for row in fixed if row["series"] != first]
    thin = {"type": "line", "strokeWidth": 1.5, "strokeDash": [4, 3]}
    thick = {"type": "line", "strokeWidth": 3}
    layers: list[dict[str, Any]] = [
        {"data": {"values": filled}, "mark": {"type": "area", "opacity": 0.35}},
        {"data": {"values": list(turned)}, "transform": TURNS, "mark": thick},
    ]
    if others:  # Vega warns of a layer without data
        layers.insert(1, {"data": {"values": others}, "mark": thin})
    return {"layer": [one | {"encoding": shared} for one in layers]}


def _colored(colors: Mapping[str, str]) -> dict[str, Any]:
    scale = {"domain": list(colors), "range": list(colors.values())}
    return {"field": "series", "type": "nominal", "scale": scale,
            "legend": _legend(list(colors))}  # fmt: skip


def _legend(names: Sequence[str]) -> dict[str, Any]:
    """Long names below each other, since a phone has no room for two."""
    columns = 1 if max(map(len, names)) > LONG else 2
    return {"title": None, "columns": columns, "labelLimit": 300}


def _scale(axis: str, log: str) -> dict[str, Any]:
    if axis in log:
        return {"type": "log", "nice": axis == "y"}
    return {"zero": axis == "y", "nice": axis == "y"}


def _axis(axis: str, log: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Ticks at powers of ten alone where the axis goes by them, fewer if they are many."""
    if axis not in log:
        return {"format": ".6~g"}  # without digits 20 is told as 2e+1
    field = "at" if axis == "x" else "value"
    sizes = [log10(row[field]) for row in rows if row[field] is not None]
    low, high = floor(min(sizes)), ceil(max(sizes))
    step = 1 + (high - low) // 8
    return {
        "format": "~g",
        "labelSeparation": 8,
        "values": [float(f"1e{n}") for n in range(low, high + 1, step)],
    }


def _lines(rows: Sequence[Row], x: str, y: str, log: str) -> list[dict[str, Any]]:
    series = list(dict.fromkeys(row["series"] for row in rows))
    styles = dict(zip(series, STYLES, strict=False))
    legend = _legend(series) if len(series) > 1 else None

    def by(which: int) -> dict[str, Any]:
        scale = {"domain": series, "range": [style[which] for style in styles.values()]}
        return {"field": "series", "type": "nominal", "scale": scale, "legend": legend}

    encoding = {
        "x": {"field": "at", "type": "quantitative", "title": x, "scale": _scale("x", log),
              "axis": _axis("x", log, rows)},
        "y": {"field": "value", "type": "quantitative", "title": y, "scale": _scale("y", log),
              "axis": _axis("y", log, rows)},
        "color": by(0),
        "strokeDash": by(2),
    }  # fmt: skip
    there = [{"filter": "isValid(datum.value)"}]
    mark = {"type": "line", "strokeWidth": 2, "clip": True}
    return [{"transform": there, "mark": mark, "encoding": encoding}]


def _sampled(encoding: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """A point for each value that was drawn, in the color of its line."""
    shared = {key: encoding[key] for key in ("x", "color")}
    return {
        "data": {"values": [dict(row) for row in rows if row.get("sampled") is not None]},
        "mark": {"type": "point", "size": 30, "opacity": 0.9, "clip": True},
        "encoding": shared | {"y": encoding["y"] | {"field": "sampled"}},
    }


def _marks(marks: Mapping[float, str]) -> list[dict[str, Any]]:
    if not marks:
        return []
    data = {"values": [{"at": at, "label": label} for at, label in marks.items()]}
    place = {"x": {"field": "at", "type": "quantitative"}}
    rule = {"type": "rule", "color": "var(--dim)", "strokeDash": [4, 3]}
    text = {"type": "text", "align": "left", "baseline": "top", "dx": 5, "color": "var(--ink)"}
    return [
        {"data": data, "mark": rule, "encoding": place},
        {"data": data, "mark": text,
         "encoding": place | {"y": {"value": 4}, "text": {"field": "label"}}},
    ]  # fmt: skip


def _level(level: tuple[float, str] | None) -> list[dict[str, Any]]:
    if level is None:
        return []
    at, label = level
    place = {"y": {"datum": at, "type": "quantitative"}}
    rule = {"type": "rule", "color": "var(--dim)", "strokeDash": [2, 2]}
    text = {"type": "text", "align": "right", "baseline": "bottom", "dx": -5, "dy": -2,
            "color": "var(--ink)", "text": label}  # fmt: skip
    once = {"data": {"values": [{}]}}
    named = [{**once, "mark": text, "encoding": place | {"x": {"value": "width"}}}] if label else []
    return [{**once, "mark": rule, "encoding": place}, *named]


def _reading(rows: Sequence[Row], x: str, log: str) -> dict[str, Any]:
    """A line that follows the pointer and tells where every series stands; – where it does not."""
    series = list(dict.fromkeys(row["series"] for row in rows))
    near = {"type": "point", "fields": ["at"], "on": "pointermove", "nearest": True,
            "clear": "pointerout"}  # fmt: skip
    holed = {row["series"] for row in rows if row["value"] is None}
    absent = {
        name: {"calculate": f"isFinite({there}) ? format({there}, '.4~g') : '–'", "as": f"told {i}"}
        for i, name in enumerate(series)
        if name in holed
        for there in (f"datum[{json.dumps(name)}]",)
    }
    return {
        "params": [{"name": "near", "select": near}],
        "transform": [{"pivot": "series", "value": "value", "groupby": ["at"]}, *absent.values()],
        "mark": {"type": "rule", "color": "var(--ink)", "strokeWidth": 1},
        "encoding": {
            "x": {"field": "at", "type": "quantitative", "title": x, "scale": _scale("x", log)},
            "opacity": {"condition": {"param": "near", "empty": False, "value": 0.7}, "value": 0},
            "tooltip": [
                _tip("at", x),
                *(
                    {"field": absent[name]["as"], "type": "nominal", "title": name}
                    if name in absent
                    else _tip(_path(name), name)
                    for name in series
                ),
            ],
        },
    }


def _path(name: str) -> str:
    """A field as Vega is told it: what would end or part a path is marked as a letter."""
    return re.sub(r"([\[\].'\"\\])", r"\\\1", name)


def _tip(field: str, title: str) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "title": title, "format": ".4~g"}
