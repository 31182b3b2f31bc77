from __future__ import annotations

import json

from kullback.experiments.frontier.picture import Style, fans, hill, ways
from kullback.reporting.figures import STYLES

NAMES: dict[str, Style] = dict(zip(("k1", "k3"), STYLES, strict=False))


def test_a_panel_for_each_reward_and_the_best_in_the_first():
    rows = [
        {"series": name, "step": step, "kl": 0.1 * step, "proxy": 1.0, "gold": 0.5}
        for name in NAMES
        for step in range(3)
    ]
    heads = {"proxy": "proxy reward", "gold": "gold reward"}
    figure = ways("Up.", rows, heads, NAMES, [{"kl": 0.1, "proxy": 1.2}], "Note.")
    first, second = figure.spec["concat"]
    assert len(first["layer"]) == len(second["layer"]) + 1
    assert list(figure.heads) == ["series", "step", "kl", "proxy", "gold"]
    json.dumps(figure.vega(), allow_nan=False)


def test_a_panel_has_the_bands_of_its_series_alone():
    rows = [
        {"series": name, "step": step, "mean": 1.0, "low": 0.5, "high": 1.5}
        for name in NAMES
        for step in range(3)
    ]
    figure = fans("Wide.", rows, "gold reward", [{name: NAMES[name]} for name in NAMES], "")
    shown = [{row["series"] for row in view["data"]["values"]} for view in figure.spec["concat"]]
    assert shown == [{"k1"}, {"k3"}]
    domains = [
        layer["encoding"]["y"]["scale"]["domain"]
        for view in figure.spec["concat"]
        for layer in view["layer"]
    ]
    assert domains == [[0, 1.5]] * 6
    json.dumps(figure.vega(), allow_nan=False)


def test_the_bars_of_a_checkpoint_do_not_lie_on_each_other():
    path = [{"step": step, "kl": 0.5 * step, "gold": 1.0} for step in range(3)]
    rows = [
        {"series": name, **path[1], "low": 0.3, "high": 0.7}
        for name in ("k1", "k3", "Rao-Blackwell")
    ]
    figure = hill("Hill.", path, rows, 0.5, "Note.")
    bars = [one["mark"] for one in figure.spec["layer"] if "yOffset" in one["mark"]]
    assert sorted(mark["yOffset"] for mark in bars) == [-6, 0, 6]
    json.dumps(figure.vega(), allow_nan=False)
