from __future__ import annotations

import json

import numpy as np

from kullback.experiments.controller.traces import COLORS, traced


def test_traces_turn_with_the_setting_and_stay_without_one():
    along = [{"at": at, "series": "k1", "value": at} for at in (1, 2)]
    figure = traced(
        "Both.", along, {"exact": np.ones(10)},
        {(1, "k1"): np.arange(10.0), (2, "k1"): np.zeros(10)},
        every=3, axes=("n", "sd", "KL"), named="n", start=1, note="",
    )  # fmt: skip
    beside, _ = figure.spec["concat"]
    target, exact, turned = (layer["data"]["values"] for layer in beside["layer"][:3])
    assert [row["x"] for row in target] == [0, 7]
    assert {row["series"] for row in exact} == {"exact"}
    assert [row["value"] for row in turned if row["at"] == 1] == [0, 3, 6, 9]
    colors = beside["layer"][0]["encoding"]["color"]["scale"]
    assert colors["domain"] == ["target", "exact", "k1"]
    assert colors["range"] == [COLORS[name] for name in colors["domain"]]
    json.dumps(figure.vega(), allow_nan=False)
