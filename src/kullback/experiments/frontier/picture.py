"""Rewards against the KL: the ways of policies, and one of them with what is logged of its KL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kullback.reporting.figures import HEIGHT, STYLES, Figure, Row

TALL = 330  # pixels of a hill with its bars
SHIFT = 6  # pixels between the bars of one checkpoint


def ways(
    title: str, rows: Sequence[Row], heads: Mapping[str, str], most: Sequence[Row], note: str
) -> Figure:
    """Paths over the KL, a panel for each reward; a point every few steps.

    Args:
        title: The finding.
        rows: ``series``, ``step``, ``kl``, and each reward by its field.
        heads: The title of each reward, by field.
        most: ``kl`` and the first reward of the best policy at each KL, drawn dotted.
        note: What must not be read out of it.
    """
    names = list(dict.fromkeys(row["series"] for row in rows))
    all_heads = {"series": "of", "step": "step", "kl": "KL(p‖q), nats", **heads}
    tips = _tips(all_heads)
    views = []
    for place, (field, head) in enumerate(heads.items()):
        on = {"x": _axis("kl", all_heads["kl"]), "y": _axis(field, head)}
        color, shape, dash = (_by(names, which) for which in range(3))
        line = {"type": "line", "strokeWidth": 2}
        layers: list[dict[str, Any]] = [
            {"mark": line, "encoding": on | {"color": color, "strokeDash": dash,
                                             "order": {"field": "step"}}},
            {"mark": {"type": "point", "filled": True, "opacity": 1, "size": 45},
             "transform": [{"filter": "datum.step % 20 == 0"}],
             "encoding": on | {"color": color, "shape": shape, "tooltip": tips}},
        ]  # fmt: skip
        if place == 0:
            dotted = {"type": "line", "strokeWidth": 1.5, "strokeDash": [2, 2],
                      "color": "var(--dim)"}  # fmt: skip
            layers.insert(0, {"data": {"values": list(most)}, "mark": dotted, "encoding": on})
        views.append({"height": HEIGHT, "data": {"values": list(rows)}, "layer": layers})
    return Figure(title, all_heads, rows, {"height": HEIGHT, "concat": views}, note)


def hill(title: str, path: Sequence[Row], rows: Sequence[Row], limit: float, note: str) -> Figure:
    """A run's reward over its KL, and as bars what is logged of the KL at some checkpoints.

    Args:
        title: The finding.
        path: ``step``, ``kl``, ``gold`` of every checkpoint.
        rows: ``series``, ``step``, ``kl``, ``gold``, ``low`` and ``high``, of each estimator.
        limit: A KL to set a line at.
        note: What must not be read out of it.
    """
    names = list(dict.fromkeys(row["series"] for row in rows))
    heads = {"series": "logged by", "step": "step", "kl": "KL(p‖q), nats", "gold": "gold reward",
             "low": "5 % of batches log less than", "high": "5 % log more than"}  # fmt: skip
    tips = _tips(heads)
    on = {"x": _axis("kl", heads["kl"]), "y": _axis("gold", heads["gold"])}
    line = {"type": "line", "color": "var(--dim)", "strokeWidth": 2}
    dot = {"type": "point", "filled": True, "opacity": 1, "color": "var(--ink)", "size": 40}
    bars = [
        {
            "transform": [{"filter": {"field": "series", "equal": name}}],
            "mark": {"type": "rule", "strokeWidth": 4, "yOffset": SHIFT * (place - 1)},
            "encoding": {"x": on["x"] | {"field": "low"}, "x2": {"field": "high"}, "y": on["y"],
                         "color": _by(names, 0), "tooltip": tips},
        }
        for place, name in enumerate(names)
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
    return {"field": field, "type": "quantitative", "title": title, "axis": {"format": "~g"}}


def _by(names: Sequence[str], which: int) -> dict[str, Any]:
    """Color, shape or dashes of a series."""
    scale = {"domain": list(names), "range": [style[which] for style in STYLES[: len(names)]]}
    columns = 1 if max(map(len, names)) > 20 else 3
    return {"field": "series", "type": "nominal", "scale": scale,
            "legend": {"title": None, "columns": columns, "labelLimit": 300}}  # fmt: skip


def _tips(heads: Mapping[str, str]) -> list[dict[str, Any]]:
    number = {"type": "quantitative", "format": ".4~g"}
    return [
        {"field": field, "title": head} | ({"type": "nominal"} if field == "series" else number)
        for field, head in heads.items()
    ]
