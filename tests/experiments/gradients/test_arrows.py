from __future__ import annotations

import json

from kullback.experiments.gradients.arrows import arrows, panels

ROWS = [
    {"name": name, "series": series, "along": 1.0, "across": 0.5, "cosine": None, "length": 1.1,
     "error": 0.5}
    for name in ("one", "two")
    for series in ("k1", "k3")
]  # fmt: skip


def test_a_panel_for_each_name():
    figure = panels("Both.", ROWS, (-1.0, 2.0), "Note.")
    titles = [view["title"]["text"] for view in figure.spec["concat"]]
    assert titles == ["one", "two"]
    assert figure.spec["height"] == figure.spec["concat"][0]["height"]
    json.dumps(figure.vega(), allow_nan=False)


def test_an_arrow_that_lies_on_another_has_the_smaller_tip():
    values = arrows(ROWS[:2], (-1.0, 2.0))["data"]["values"]
    assert values[0]["size"] > values[1]["size"]


def test_a_dial_turns_what_has_a_setting():
    still = arrows(ROWS[:2], (-1.0, 2.0))["layer"][-1]
    turned = arrows([{**row, "at": 0.5} for row in ROWS[:2]], (-1.0, 2.0))["layer"][-1]
    assert not still["transform"]
    assert turned["transform"]
    assert "shape" in still["encoding"]
    assert "shape" not in turned["encoding"]
