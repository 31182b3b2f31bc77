"""Figures: Vega-Lite specifications, each with the finding as its title and its data as a table.

Colors are the page's CSS variables, so that one drawing serves light and dark. They are after
Okabe and Ito's, which people who see fewer colors tell apart; shapes and dashes say the same once
more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

Row = Mapping[str, Any]

HEIGHT = 240  # pixels of a drawing with two axes
LINE = 26  # pixels of a line of a drawing by names
# Of series, in their order: color, shape of the points, dashes of the line.
STYLES = (
    ("var(--blue)", "circle", [1, 0]),
    ("var(--orange)", "square", [6, 3]),
    ("var(--green)", "diamond", [2, 2]),
    ("var(--purple)", "triangle-up", [8, 3, 2, 3]),
    ("var(--ink)", "cross", [1, 3]),
)
CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--ink)",
        "titleColor": "var(--dim)",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "gridColor": "var(--line)",
        "domainColor": "var(--dim)",
        "tickColor": "var(--dim)",
        "labelLimit": 280,
        "labelOverlap": True,
        "tickCount": 6,
    },
    "legend": {
        "symbolOpacity": 1,
        "labelColor": "var(--ink)",
        "titleColor": "var(--dim)",
        "orient": "top",
        "labelFontSize": 12,
        "symbolSize": 80,
    },
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing and the table behind it.

    Args:
        title: What it shows, as a sentence.
        heads: The head of each column of the table, by field.
        rows: The data; a number that does not exist is None and is not drawn.
        spec: The Vega-Lite specification without its data.
        note: What must not be read out of it; may be empty.

    Example:
        >>> made = bars("Most are small.", [{"low": 0, "high": 1, "count": 9}], "nats", "tokens")
        >>> made.heads["count"], made.vega()["data"]["values"][0]["count"]
        ('tokens', 9)
    """

    title: str
    heads: Mapping[str, str]
    rows: Sequence[Row]
    spec: Mapping[str, Any]
    note: str = ""

    @property
    def height(self) -> int:
        """Pixels that the drawing takes, legend and axes included, about."""
        return self.spec["height"] + 80

    def vega(self) -> dict[str, Any]:
        """The whole specification, as wide as its place on the page."""
        return {
            "width": "container",
            "autosize": {"type": "fit-x", "contains": "padding"},
            "data": {"values": [dict(row) for row in self.rows]},
            "config": CONFIG,
            **self.spec,
        }


def intervals(
    title: str,
    rows: Sequence[Row],
    x: str,
    *,
    groups: Mapping[str, str],
    legend: str | None = None,
    wide_range: float | None = None,
    note: str = "",
) -> Figure:
    """Means with their intervals, one line each, by name.

    Args:
        title: The finding.
        rows: ``name``, ``mean``, ``low``, ``high``, ``group``; ``exact``, where there is one.
        x: What is measured, with its unit.
        groups: The color of each group, in the order of the legend.
        legend: What the groups are.
        wide_range: Sizes from which the axis goes by powers of ten on either side of 0; None for
            an even axis.
        note: What must not be read out of it.
    """
    scale: dict[str, Any] = {"zero": True, "nice": True}
    if wide_range is not None:
        scale |= {"type": "symlog", "constant": wide_range, "nice": False}
    there = {row["group"] for row in rows}
    styles = {
        group: (color, shape)
        for (group, color), (_, shape, _) in zip(groups.items(), STYLES, strict=False)
        if group in there
    }
    color = _by("group", styles, 0, legend)
    y = {
        "field": "name", "type": "nominal", "sort": None,
        "axis": {"title": None, "domain": False, "ticks": False, "labelOverlap": False},
    }  # fmt: skip
    on_x = {"field": "mean", "type": "quantitative", "title": x, "scale": scale}
    if wide_range is not None:
        on_x["axis"] = {"values": _powers(rows, wide_range), "format": "~g"}
    heads = {"name": "", "mean": "mean", "low": "low", "high": "high"}
    exact = any(row.get("exact") is not None for row in rows)
    heads |= {"exact": "exact"} if exact else {}
    layers = [_zero("x")]
    if _any_interval(rows):
        ends = {"x": on_x | {"field": "low"}, "x2": {"field": "high"}, "y": y, "color": color}
        layers.append({"mark": {"type": "rule", "strokeWidth": 2.5}, "encoding": ends})
    if exact:
        tick = {"type": "tick", "color": "var(--ink)", "thickness": 2.5, "size": 16}
        layers.append({"mark": tick, "encoding": {"x": on_x | {"field": "exact"}, "y": y}})
    tips = [_tip(field, head or "of") for field, head in heads.items()]
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
            "encoding": {"x": on_x, "y": y, "color": color, "tooltip": tips,
                         "shape": _by("group", styles, 1, legend)},
        }
    )  # fmt: skip
    return Figure(title, heads, rows, {"height": LINE * len(rows), "layer": layers}, note)


def bands(
    title: str,
    rows: Sequence[Row],
    x: str,
    y: str,
    *,
    names: bool = False,
    note: str = "",
) -> Figure:
    """Means along an axis, a line for each series; of the first, the band of its intervals.

    Args:
        title: The finding.
        rows: ``name``, ``at`` (a number), ``series``, ``mean``, ``low``, ``high``, ``tokens``.
        x: The axis.
        y: What is measured, with its unit.
        names: Set the names of the cells along the axis in place of numbers.
        note: What must not be read out of it.
    """
    series = list(dict.fromkeys(row["series"] for row in rows))
    styles = dict(zip(series, STYLES, strict=False))
    low, high, cut = _visible([row for row in rows if row["series"] == series[0]], rows)
    on_x: dict[str, Any] = {"field": "at", "type": "quantitative", "title": x}
    whole = all(float(row["at"] or 0).is_integer() for row in rows)
    on_x |= {"scale": {"zero": False, "nice": False, "padding": 12},
             "axis": {"format": "~g", "tickMinStep": int(whole)}}  # fmt: skip
    if names:
        on_x = {"field": "name", "type": "ordinal", "sort": None, "title": x,
                "axis": {"labelAngle": 0}, "scale": {"type": "point", "padding": 0.5}}  # fmt: skip
    ends = {"domain": [low, high]} if isfinite(high - low) else {}  # a wrong log may hold 1e308
    on_y = {"field": "mean", "type": "quantitative", "title": y, "scale": ends}
    color = _by("series", styles, 0)
    shared = {"x": on_x, "color": color}
    heads = {"name": x, "series": "by", "mean": "mean", "low": "low", "high": "high",
             "tokens": "tokens"}  # fmt: skip
    layers = [_zero("y")]
    if _any_interval(rows):
        band = {"y": on_y | {"field": "low"}, "y2": {"field": "high"}}
        area = {"type": "area", "opacity": 0.18, "clip": True}
        layers.append({"mark": area, "encoding": shared | band,
                       "transform": [{"filter": {"field": "series", "equal": series[0]}},
                                     {"filter": "isValid(datum.low)"}]})  # fmt: skip
    layers += [
        {
            "mark": {"type": "line", "strokeWidth": 2, "clip": True},
            "encoding": shared | {"y": on_y, "strokeDash": _by("series", styles, 2)},
        },
        {
            # The nearest point answers, wherever the pointer is.
            "params": [{"name": "near", "select": {"type": "point", "on": "pointermove",
                                                   "nearest": True, "clear": "pointerout"}}],
            "mark": {"type": "point", "filled": True, "opacity": 1, "clip": True},
            "encoding": shared | {
                "y": on_y,
                "shape": _by("series", styles, 1),
                "size": {"condition": {"param": "near", "empty": False, "value": 160}, "value": 45},
                "tooltip": [_tip(field, head) for field, head in heads.items()],
            },
        },
    ]  # fmt: skip
    return Figure(title, heads, rows, {"height": HEIGHT, "layer": layers}, f"{note}{cut}".strip())


def bars(title: str, rows: Sequence[Row], x: str, y: str, *, note: str = "") -> Figure:
    """A histogram.

    Args:
        title: The finding.
        rows: ``low``, ``high``, ``count``.
        x: What is counted by, with its unit.
        y: What is counted.
        note: What must not be read out of it.
    """
    heads = {"low": "from", "high": "to", "count": y}
    spec = {
        "height": HEIGHT * 3 // 4,
        "mark": {"type": "bar", "color": "var(--blue)", "stroke": "var(--paper)"},
        "encoding": {
            "x": {"field": "low", "type": "quantitative", "title": x, "bin": {"binned": True},
                  "scale": {"zero": False, "nice": False}, "axis": {"format": "~g"}},
            "x2": {"field": "high"},
            "y": {"field": "count", "type": "quantitative", "title": y},
            "tooltip": [_tip(field, head) for field, head in heads.items()],
        },
    }  # fmt: skip
    return Figure(title, heads, rows, spec, note)


def shares(title: str, rows: Sequence[Row], x: str, *, note: str = "") -> Figure:
    """Shares of two or more sums side by side, bin by bin.

    The bins are named along the axis by ``name``, in the table by ``bin``.

    Args:
        title: The finding.
        rows: ``name`` and ``bin``, ``series``, ``share`` between 0 and 1.
        x: What is binned, with its unit.
        note: What must not be read out of it.
    """
    series = list(dict.fromkeys(row["series"] for row in rows))
    styles = dict(zip(series, STYLES, strict=False))
    heads = {"bin": x, "series": "of", "share": "share"}
    tips = [_tip("bin", x), _tip("series", "of"), _tip("share", "share") | {"format": ".2~%"}]
    spec = {
        "height": HEIGHT * 3 // 4,
        "mark": {"type": "bar", "stroke": "var(--paper)"},
        "encoding": {
            "x": {"field": "name", "type": "ordinal", "sort": None, "title": x,
                  "axis": {"labelAngle": 0}},
            "xOffset": {"field": "series", "sort": None},
            "y": {"field": "share", "type": "quantitative", "title": "share",
                  "axis": {"format": "~%"}},
            "color": _by("series", styles, 0),
            "tooltip": tips,
        },
    }  # fmt: skip
    return Figure(title, heads, rows, spec, note)


def _zero(axis: str) -> dict[str, Any]:
    """A dotted line where a KL is 0."""
    mark = {"type": "rule", "color": "var(--dim)", "strokeDash": [2, 2]}
    return {"mark": mark, "encoding": {axis: {"datum": 0, "type": "quantitative"}}}


def _any_interval(rows: Sequence[Row]) -> bool:
    return any(row["low"] is not None for row in rows)


def _by(
    field: str, styles: Mapping[str, Any], which: int, title: str | None = None
) -> dict[str, Any]:
    """Color, shape or dashes by a field; a legend where there is something to tell apart."""
    scale = {"domain": list(styles), "range": [style[which] for style in styles.values()]}
    legend = {"title": title} if len(styles) > 1 else None
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _tip(field: str, head: str) -> dict[str, Any]:
    words = field in ("name", "bin", "series", "group")
    form = ",d" if field in ("tokens", "count") else ".4~g"
    kind = {"type": "nominal"} if words else {"type": "quantitative", "format": form}
    return {"field": field, "title": head} | kind


def _powers(rows: Sequence[Row], smallest: float) -> list[float]:
    """Ticks at 0 and at powers of ten on the sides where there is something."""
    ends = [row[key] for row in rows for key in ("mean", "low", "high") if row[key] is not None]
    ticks, size = [0.0], smallest
    while size <= max((abs(end) for end in ends), default=0.0):
        ticks += [sign * size for sign in (-1, 1) if any(sign * end >= size for end in ends)]
        size *= 10
    return sorted(ticks)


def _visible(banded: Sequence[Row], rows: Sequence[Row]) -> tuple[float, float, str]:
    """The ends of the axis, and a sentence if bands reach beyond them.

    A cell of two clusters may have a band a hundred times as wide as what the figure is about.
    """
    means = [0.0, *(row["mean"] for row in rows if row["mean"] is not None)]
    banded = [row for row in banded if row["low"] is not None]
    low, high = min(means), max(means)
    wide = sorted(row["high"] - row["low"] for row in banded)
    reach = max(high - low, wide[len(wide) * 3 // 4] if wide else 0.0)
    bottom = min([low, *(max(row["low"], low - reach) for row in banded)])
    top = max([high, *(min(row["high"], high + reach) for row in banded)])
    beyond = sum(row["low"] < bottom or row["high"] > top for row in banded)
    room = 0.05 * (top - bottom) or 1.0
    few = "1 interval reaches" if beyond == 1 else f"{beyond} intervals reach"
    said = f" {few} beyond the picture; the table has it all." if beyond else ""
    return bottom - room, top + room, said
