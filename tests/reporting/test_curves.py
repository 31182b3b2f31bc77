from __future__ import annotations

import json

import pytest

from kullback.reporting.curves import TURNS, areas, curves, dial, groups, profiles

ROWS = [
    {"at": (at + 1) / 10, "series": series, "value": value}
    for at in range(3)
    for series, value in (("k1", 0.02), ("k3", 30.0))
]
COLORS = {"p": "var(--blue)", "q": "var(--dim)"}


def turning(kind: str):
    if kind == "groups":
        rows = [{"at": 0.1, "name": "a", "series": series, "value": 0.5} for series in COLORS]
        return groups(rows, "probability", COLORS)
    fixed = [{"x": 0.0, "series": "p", "value": 0.4}]
    turned = [{"x": 0.0, "series": "q", "value": 0.6, "at": 0.1}]
    return profiles(fixed, turned, "x", "density", COLORS)


def test_every_figure_is_json_and_has_its_table():
    outcomes = [{"name": "1", "low": 0.0, "high": 0.49, "value": -1.0, "label": "−1"}]
    for made in (
        curves("t", ROWS, "x", "y", log="xy", marks={1.0: "here"}, level=(1.0, "KL")),
        areas("t", outcomes, "nats", (-1, 1), "note"),
        dial("t", ROWS, turning("groups"), "x", "y", named="depth", start=0.1),
        dial("t", ROWS, turning("profiles"), "x", "y", named="alpha", start=0.1, log="y"),
    ):
        json.dumps(made.vega(), allow_nan=False)
        assert made.height > 100
        assert set(made.heads) <= set(made.rows[0])


def test_an_axis_by_powers_of_ten_has_its_ticks_there():
    (line, *_) = curves("t", ROWS, "x", "y", log="y").spec["layer"]
    axis = line["encoding"]["y"]
    assert axis["scale"]["type"] == "log"
    assert axis["axis"]["values"] == pytest.approx([0.01, 0.1, 1, 10, 100])
    assert "type" not in line["encoding"]["x"]["scale"]


def test_points_are_drawn_only_where_something_was_sampled():
    bare = curves("t", ROWS, "x", "y")
    assert "sampled" not in bare.heads
    rows = [{**row, "sampled": 0.03 if row["at"] == 0.1 else None} for row in ROWS]
    made = curves("t", rows, "x", "y")
    (points,) = [layer for layer in made.spec["layer"] if layer["mark"]["type"] == "point"]
    assert len(points["data"]["values"]) == 2
    assert "sampled" in made.heads


def test_areas_are_the_parts_of_the_mean():
    rows = [
        {"name": "1", "low": 0.0, "high": 0.25, "value": 4.0, "label": "4"},
        {"name": "2", "low": 0.25, "high": 1.0, "value": -1.0, "label": "−1"},
    ]
    made = areas("t", rows, "nats", (-1, 4), "")
    assert [row["part"] for row in made.rows] == [1.0, -0.75]
    assert made.spec["layer"][0]["encoding"]["color"]["condition"]["value"] == "var(--red)"


@pytest.mark.parametrize("kind", ["groups", "profiles"])
def test_a_dial_has_a_slider_over_all_settings_and_what_turns_is_filtered(kind):
    made = dial("t", ROWS, turning(kind), "x", "y", named="depth", start=0.1)
    beside, along = made.vega()["concat"]
    params = [one for layer in along["layer"] for one in layer.get("params", [])]
    (chosen,) = params
    slider = chosen["bind"]["at"]
    assert (slider["min"], slider["max"], slider["step"]) == (0.1, 0.3, 0.1)
    assert chosen["value"] == [{"at": 0.1}]
    assert any(layer.get("transform") == TURNS for layer in beside["layer"])


def test_a_name_may_hold_what_would_end_or_part_a_path():
    rows = [{**row, "series": f"{row['series']}'s [0.5]"} for row in ROWS]
    reading = curves("t", rows, "x", "y").spec["layer"][-1]
    _, first, _ = reading["encoding"]["tooltip"]
    assert first["field"] == r"k1\'s \[0\.5\]"
    assert first["title"] == "k1's [0.5]"


def test_no_layer_is_without_data():
    """Vega warns of one."""
    two = turning("profiles")["layer"]
    fixed = [{"x": 0.0, "series": series, "value": 0.4} for series in COLORS]
    turned = [{"x": 0.0, "series": "q", "value": 0.6, "at": 0.1}]
    three = profiles(fixed, turned, "x", "density", COLORS)["layer"]
    assert (len(two), len(three)) == (2, 3)
    assert all(layer["data"]["values"] for layer in (*two, *three))


def test_where_a_series_has_no_value_the_pointer_tells_none():
    rows = [*ROWS, {"at": 0.4, "series": "a 'b'", "value": None}]
    reading = curves("t", rows, "x", "y").spec["layer"][-1]
    _, *whole, holed = reading["encoding"]["tooltip"]
    _, told = reading["transform"]
    assert all(one["type"] == "quantitative" for one in whole)
    assert (holed["field"], holed["title"]) == (told["as"], "a 'b'")
    assert told["calculate"].startswith("isFinite(datum[\"a 'b'\"]) ?")
