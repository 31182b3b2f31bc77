"""The picture of a logged series: its points, its level with a robust band, its events."""

from __future__ import annotations

from typing import Any

from kullback.reporting.figures import HEIGHT, Figure, Row
from kullback.reporting.words import counted, number

MARGIN = 0.06  # of the height, on either side
FAR = 3.0  # heights of the usual range beyond which a point is drawn at the edge
WIDE = 1e3  # times its smallest value from which a coefficient is drawn by powers of ten
_ON_LOG = ("line", "point")  # what needs no 0
_HEADS = {
    "at": "step",
    "value": "value",
    "level": "running median",
    "low": "band from",
    "high": "to",
    "event": "event",
}


def series_figure(one: dict[str, Any]) -> Figure | None:
    """The picture of a series; none where it has no number.

    Args:
        one: A series as ``steps_document`` has it.
    """
    held = one["points"]
    if not held["steps"]:
        return None
    events = dict.fromkeys(one["spikes"], "spike") | dict.fromkeys(one["changes"], "new level")
    bottom, top = _ends(held)
    rows: list[Row] = [
        {
            "at": at,
            "value": value,
            "level": level,
            "low": low,
            "high": high,
            "event": events.get(at, "–"),
            "shown": min(max(value, bottom), top),
        }
        for at, value, level, low, high in zip(*held.values(), strict=True)
    ]
    beyond = sum(not bottom <= value <= top for value in held["values"])
    edge = f" {counted(beyond, 'point')} beyond the picture stand at its edge." if beyond else ""
    unit = "nats" if one["kind"] == "kl" else "coefficient"
    room = MARGIN * (top - bottom) or 1.0
    layers = _layers(unit, {"domain": [bottom - room, top + room]})
    smallest = min(held["values"])
    if one["kind"] == "coefficient" and smallest > 0 and top > WIDE * smallest:
        scale = {"type": "log", "domain": [smallest, top]}
        layers = [layer for layer in _layers(unit, scale) if layer["mark"]["type"] in _ON_LOG]
    if not any(row["event"] != "–" for row in rows):
        layers.pop()  # of no events a scale has no extent
    spec = {"height": HEIGHT, "layer": layers}
    band = (
        "The band is two noises to either side of the running median; it is no interval for the KL."
    )
    note = f"{band * (one['kind'] == 'kl')}{edge}".strip()
    return Figure(_title(one), _HEADS, rows, spec, note)


def _title(one: dict[str, Any]) -> str:
    said = []
    if one["spikes"]:
        said.append(counted(len(one["spikes"]), "spike"))
    if one["changes"]:
        said.append(f"a new level at step {one['changes'][0]:g}")
    if one["negative_share"]:
        said.append(f"below 0 at {one['negative_share']:.0%} of the steps")
    if one["not_finite"]:
        said.append(f"no number at {counted(one['not_finite'], 'step')}")
    if one["kind"] == "coefficient":
        said = [f"from {number(one['first'])} to {number(one['last'])}", *said]
    told = ", ".join(said) or "no spike, no jump, never below 0"
    return f"{one['name']}: {told}."


def _ends(held: dict[str, list[float]]) -> tuple[float, float]:
    """The ends of the axis: all points, but for those far beyond the usual ones."""
    values, middle = sorted(held["values"]), [*held["low"], *held["high"], 0.0]
    usual = [*values[len(values) // 20 : len(values) - len(values) // 20], *middle]
    low, high = min(usual), max(usual)
    reach = FAR * (high - low)
    within = [value for value in values if low - reach <= value <= high + reach]
    return min([low, *within]), max([high, *within])


def _layers(unit: str, on_y: dict[str, Any]) -> list[dict[str, Any]]:
    scale = {"zero": False, "nice": False, "padding": 12}
    x = {"field": "at", "type": "quantitative", "title": "step", "scale": scale,
         "axis": {"format": ",.6~g"}}  # fmt: skip
    y = {"field": "shown", "type": "quantitative", "title": unit, "scale": on_y}
    tips = [
        {"field": field, "title": head}
        | ({"type": "nominal"} if field == "event" else {"type": "quantitative", "format": ".4~g"})
        for field, head in _HEADS.items()
    ]
    zero = {"mark": {"type": "rule", "color": "var(--dim)", "strokeDash": [2, 2]},
            "encoding": {"y": {"datum": 0, "type": "quantitative"}}}  # fmt: skip
    band = {"mark": {"type": "area", "opacity": 0.18, "clip": True, "color": "var(--blue)"},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}}}  # fmt: skip
    line = {"mark": {"type": "line", "strokeWidth": 2, "clip": True, "color": "var(--blue)"},
            "encoding": {"x": x, "y": y | {"field": "level"}}}  # fmt: skip
    points = {"mark": {"type": "point", "filled": True, "opacity": 0.7, "size": 22,
                       "color": "var(--ink)"},
              "encoding": {"x": x, "y": y, "tooltip": tips}}  # fmt: skip
    events = {
        "transform": [{"filter": "datum.event !== '–'"}],
        "mark": {"type": "point", "filled": True, "opacity": 1, "size": 150},
        "encoding": {
            "x": x,
            "y": y,
            "tooltip": tips,
            "color": _event(["var(--orange)", "var(--red)"]),
            "shape": _event(["triangle-up", "diamond"]),
        },
    }
    return [zero, band, line, points, events]


def _event(of: list[str]) -> dict[str, Any]:
    scale = {"domain": ["spike", "new level"], "range": of}
    return {"field": "event", "type": "nominal", "scale": scale, "legend": None}
