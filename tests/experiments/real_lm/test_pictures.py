from __future__ import annotations

import json

import pytest

from kullback.experiments.real_lm.pictures import CHOSEN, COLORS, cloud, errors, ridges

BINS = [
    {"name": name, "low": low, "high": 10 * low, "share": share}
    for name in ("a", "b")
    for low, share in ((0.1, 0.25), (1.0, 0.75))
]
POINTS = [
    {"name": name, "at": at, "value": value}
    for name in ("a", "b")
    for at, value in ((0.01, 0.1), (1.0, 30.0))
]
LINES = [
    {"name": name, "at": at, "series": series, "value": 0.1}
    for name in ("a", "b")
    for series in COLORS
    for at in (4, 8)
]


def all_made():
    return (
        ridges("t", BINS, [{"name": "a", "value": 2.0}], "S", "note"),
        cloud("t", POINTS, "KL", "sd", start="b", note="note"),
        errors("t", LINES, "prompts", "error", start="b", note="note"),
    )


def test_every_picture_is_json_and_has_its_table():
    for made in all_made():
        json.dumps(made.vega(), allow_nan=False)
        assert set(made.heads) == set(made.rows[0])


def test_a_ridge_stands_where_its_name_does_and_changes_color_at_1():
    made, *_ = all_made()
    bars = made.spec["layer"][0]
    axis = bars["encoding"]["y"]["axis"]
    assert axis["values"] == [0, 1]
    assert axis["labelExpr"] == '["b", "a"][datum.value]'  # from the bottom up
    assert bars["transform"][0]["calculate"] == '1 - indexof(["a", "b"], datum.name)'
    assert bars["encoding"]["x"]["axis"]["values"] == pytest.approx([0.1, 1, 10])
    assert bars["encoding"]["color"]["condition"]["test"] == "datum.low >= 0.999"


def test_one_is_chosen_from_a_list():
    _, *chosen = all_made()
    for made in chosen:
        (parameter,) = made.spec["params"]
        assert parameter["value"] == "b"
        assert parameter["bind"]["options"] == ["a", "b"]
    points, lines = chosen
    assert lines.spec["transform"] == CHOSEN
    assert [layer.get("transform") for layer in points.spec["layer"]].count(CHOSEN) == 1


def test_vega_is_told_to_show_every_tick():
    """It leaves out of the values of an axis what is beyond tickCount."""
    for made in all_made():
        for layer in made.spec["layer"]:
            for channel in {"x", "y"} & set(layer["encoding"]):
                axis = layer["encoding"][channel].get("axis", {})
                assert axis.get("tickCount", 0) == len(axis.get("values", []))
