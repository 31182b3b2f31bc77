from __future__ import annotations

import json

from kullback.experiments.four_faces.panels import panels, written

TARGET = [{"x": 0.0, "value": 0.1}, {"x": 1.0, "value": 0.4}]
FITS = {"one end": [{"x": 0.0, "value": 0.6}], "the other": [{"x": 1.0, "value": 0.2}]}


def test_each_panel_has_the_target_and_its_fit_on_one_scale():
    figure = panels("t", TARGET, FITS, "")
    views = figure.spec["concat"]
    assert [view["title"]["text"] for view in views] == list(FITS)
    for view, fit in zip(views, FITS.values(), strict=True):
        grey, line = view["layer"]
        assert (grey["data"]["values"], line["data"]["values"]) == (TARGET, fit)
        assert line["encoding"]["y"]["scale"]["domain"] == [0, 0.6]
    json.dumps(figure.vega(), allow_nan=False)


def test_the_table_has_every_point_of_every_fit():
    assert [row["name"] for row in panels("t", TARGET, FITS, "").rows] == list(FITS)


def test_words_turn_with_the_bars():
    layer = written([{"at": 1.0, "name": "1", "top": 0.5, "said": "3 nats", "color": "red"}])
    assert layer["transform"][0]["filter"]["param"] == "chosen"
    assert layer["encoding"]["color"]["scale"] is None
