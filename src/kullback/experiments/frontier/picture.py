"""Rewards against the KL: the ways of policies, and one of them with what is logged of its KL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kullback.reporting.figures import HEIGHT, STYLES, Figure, Row

Style = tuple[str, str, list[int]]  # color, shape of the points, dashes of the line

TALL = 330  # pixels of a hill with its bars
KL = "KL(p‖q), nats"
SHIFT = 6  # pixels between the bars of one checkpoint


def ways(
    title: str,
    rows: Sequence[Row],
    heads: Mapping[str, str],
    styles: Mapping[str, Style],
    most: Sequence[Row],
    note: str,
) -> Figure:
    """Paths over the KL, a panel for each reward; a point every 20 steps.

    Args:
        title: The finding.
        rows: ``series``, ``step``, ``kl``, and each reward by its field.
        heads: The title of each reward, by field.
        styles: Color, shape and dashes of each series.
        most: ``kl`` and the first reward of the best policy at each KL, drawn dotted.
        note: What must not be read out of it.
    """
    told = {"series": "of", "step": "step", "kl": KL, **heads}
    color, shape, dash = (_by(styles, which) for which in range(3))
    views = []
    for place, (field, head) in enumerate(heads.items()):
        on = {"x": _axis("kl", KL), "y": _axis(field, head)}
        line = on | {"color": color, "strokeDash": dash, "order": {"field": "step"}}
        point = on | {"color": color, "shape": shape, "tooltip": _tips(told)}
        layers: list[dict[str, Any]] = [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": line},
            {
                "transform": [{"filter": "datum.step % 20 == 0"}],
                "mark": {"type": "point", "filled": True, "opacity": 1, "size": 45},
                "encoding": point,
            },
        ]
        if place == 0:
            dots = {"strokeWidth": 1.5, "strokeDash": [2, 2], "color": "var(--dim)"}
            best = {"data": {"values": list(most)}, "mark": {"type": "line", **dots}}
            layers.insert(0, best | {"encoding": on})
        views.append({"height": HEIGHT, "data": {"values": list(rows)}, "layer": layers})
    return Figure(title, told, rows, {"height": HEIGHT, "concat": views}, note)


def fans(
    title: str,
    rows: Sequence[Row],
    y: str,
    panels: Sequence[Mapping[str, Style]],
    note: str,
) -> Figure:
    """Means over steps, and the bands in which runs lie.

    Args:
        title: The finding.
        rows: ``series``, ``step``, ``mean``, ``low``, ``high``.
        y: What is measured.
        panels: Of each panel, color, shape and dashes of its series.
        note: What must not be read out of it.
    """
    heads = {"series": "of", "step": "step", "mean": f"{y}, mean", "low": "5 % of runs below",
             "high": "5 % above"}  # fmt: skip
    top = max(row["high"] for row in rows)
    on_y = _axis("mean", y) | {"scale": {"domain": [0, top]}}
    views = []
    for styles in panels:
        on = {"x": _axis("step", "step"), "color": _by(styles, 0)}
        band = {"y": on_y | {"field": "low"}, "y2": {"field": "high"}}
        mean = {"y": on_y, "strokeDash": _by(styles, 2)}
        layers = [
            {"mark": {"type": "area", "opacity": 0.25}, "encoding": on | band},
            {"mark": {"type": "line", "strokeWidth": 2.5}, "encoding": on | mean},
            {"mark": {"type": "point", "filled": True, "opacity": 0, "size": 200},
             "encoding": on | {"y": on_y, "tooltip": _tips(heads)}},
        ]  # fmt: skip
        values = [row for row in rows if row["series"] in styles]
        views.append({"height": HEIGHT, "data": {"values": values}, "layer": layers})
    own = dict.fromkeys(("color", "strokeDash"), "independent")
    spec = {"height": HEIGHT, "concat": views, "resolve": {"scale": own, "legend": own}}
    return Figure(title, heads, rows, spec, note)


def hill(title: str, path: Sequence[Row], rows: Sequence[Row], limit: float, note: str) -> Figure:
    """A run's reward over its KL, and as bars what is logged of the KL at some checkpoints.

    Args:
        title: The finding.
        path: ``step``, ``kl``, ``gold`` of every checkpoint.
        rows: ``series``, ``step``, ``kl``, ``gold``, ``low`` and ``high``, of each estimator.
        limit: A KL to set a line at.
        note: What must not be read out of it.
    """
    styles = dict(zip(dict.fromkeys(row["series"] for row in rows), STYLES, strict=False))
    heads = {"series": "logged by", "step": "step", "kl": KL, "gold": "gold reward",
             "low": "5 % of batches log less than", "high": "5 % log more than"}  # fmt: skip
    tips = _tips(heads)
    on = {"x": _axis("kl", KL), "y": _axis("gold", heads["gold"])}
    line = {"type": "line", "color": "var(--dim)", "strokeWidth": 2}
    dot = {"type": "point", "filled": True, "opacity": 1, "color": "var(--ink)", "size": 40}
    bars = [
        {
            "transform": [{"filter": {"field": "series", "equal": name}}],
            "mark": {"type": "rule", "strokeWidth": 4, "yOffset": SHIFT * (place - 1)},
            "encoding": {"x": on["x"] | {"field": "low"}, "x2": {"field": "high"}, "y": on["y"],
                         "color": _by(styles, 0), "tooltip": tips},
        }
        for place, name in enumerate(styles)
    ]  # fmt: skip
    at = {"x": {"datum": limit, "type": "quantitative"}}
    once = {"data": {"values": [{}]}}
    text = {"type": "text", "align": "left", "baseline": "top", "dx": 5, "color": "var(--ink)",
            "text": f"a limit of {limit:g} nats"}  # fmt: skip
    layers = [
        {**once, "mark": {"type": "rule", "color": "var(--dim)", "strokeDash": [4, 3]},
         "encoding": at},
        {**once, "mark": text, "encoding": at | {"y": {"value": 4}}},
        {"data": {"values": list(path)}, "mark": line,
         "encoding": on | {"order": {"field": "step"}}},
        *bars,
        {"data": {"values": list(path)}, "mark": dot | {"size": 14}, "encoding": on},
        {"mark": dot, "encoding": on | {"tooltip": tips[1:4]}},
    ]  # fmt: skip
    return Figure(title, heads, rows, {"height": TALL, "layer": layers}, note)


def _axis(field: str, title: str) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "title": title,
            "axis": {"format": ".6~g"}}  # fmt: skip


def _by(styles: Mapping[str, Style], which: int) -> dict[str, Any]:
    """Color, shape or dashes of a series."""
    scale = {"domain": list(styles), "range": [style[which] for style in styles.values()]}
    columns = 1 if max(map(len, styles)) > 20 else 3
    return {"field": "series", "type": "nominal", "scale": scale,
            "legend": {"title": None, "columns": columns, "labelLimit": 300}}  # fmt: skip


def _tips(heads: Mapping[str, str]) -> list[dict[str, Any]]:
    number = {"type": "quantitative", "format": ".4~g"}
    return [
        {"field": field, "title": head} | ({"type": "nominal"} if field == "series" else number)
        for field, head in heads.items()
    ]
