from __future__ import annotations

import json

from kullback.reporting.curves import TURNS, dial
from kullback.reporting.enclosed import SIDE, gap, plane

COLORS = {"equal KL": "var(--blue)", "circle": "var(--dim)"}
CORNERS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (1.0, 0.0))


def view():
    rows = [
        {"at": at, "series": series, "x": x, "y": y, "order": order}
        for at in (0.1, 0.2)
        for series in COLORS
        for order, (x, y) in enumerate(CORNERS)
    ]
    return plane(rows, "first", "second", COLORS, 2.0)


def test_a_gap_is_shaded_between_its_lines_and_read_by_the_pointer():
    rows = [{"at": 1.0, "low": 0.0, "high": 0.5, "between": 0.5}]
    made = gap("t", rows, "r", "nats", ("log r", "r − 1", "k3"), "note")
    json.dumps(made.vega(), allow_nan=False)
    area, low, high, reading = made.spec["layer"]
    assert (area["encoding"]["y"]["field"], area["encoding"]["y2"]["field"]) == ("low", "high")
    assert [one["encoding"]["color"]["datum"] for one in (low, high)] == ["log r", "r − 1"]
    assert [one["field"] for one in reading["encoding"]["tooltip"]] == list(made.heads)


def test_a_plane_has_one_scale_and_is_as_high_as_wide():
    made = view()
    assert made["width"] == made["height"] == SIDE
    for layer in made["layer"]:
        scales = [layer["encoding"][axis]["scale"]["domain"] for axis in ("x", "y")]
        assert scales == [[-2.0, 2.0], [-2.0, 2.0]]


def test_curves_in_a_plane_turn_and_are_drawn_in_their_order():
    *lines, center = view()["layer"]
    assert center["data"]["values"] == [{"x": 0, "y": 0}]
    for line, name in zip(lines, COLORS, strict=True):
        chosen, turns = line["transform"]
        assert chosen["filter"]["equal"] == name
        assert [turns] == TURNS
        assert line["encoding"]["order"] == {"field": "order"}
    assert ["fill" in line["mark"] for line in lines] == [True, False]


def test_beside_a_dial_it_keeps_its_size():
    rows = [{"at": at, "series": "KL", "value": 1.0} for at in (0.1, 0.2)]
    made = dial("t", rows, view(), "x", "y", named="KL", start=0.1)
    beside, _ = json.loads(json.dumps(made.vega(), allow_nan=False))["concat"]
    assert beside["width"] == beside["height"] == SIDE
