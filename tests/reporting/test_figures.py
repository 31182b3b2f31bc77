from __future__ import annotations

import json
from hashlib import sha256
from importlib.resources import files

import pytest

from kullback.reporting.figures import STYLES, bands, bars, intervals, shares

COLORS = {"a": "var(--blue)", "b": "var(--red)", "c": "var(--green)"}


def row(name: str, mean: float, low: float | None, high: float | None, **more):
    return {"name": name, "mean": mean, "low": low, "high": high, **more}


def test_the_vendored_builds_are_those_that_are_named():
    folder = files("kullback.reporting").joinpath("vega")
    told = folder.joinpath("README.md").read_text(encoding="utf-8")
    for name in ("vega", "vega-lite", "vega-embed"):
        data = folder.joinpath(f"{name}.min.js").read_bytes()
        assert sha256(data).hexdigest() in told
        assert "Redistribution" in folder.joinpath(f"LICENSE.{name}").read_text(encoding="utf-8")


def test_every_figure_is_json_as_wide_as_its_place():
    point = row("x", 0.1, 0.0, 0.2, series="k1", at=1.0, tokens=3, group="a")
    for made in (
        intervals("t", [point], "nats", groups=COLORS),
        bands("t", [point], "step", "nats"),
        bars("t", [{"low": 0, "high": 1, "count": 2}], "nats", "tokens"),
        shares("t", [{"name": "1", "bin": "0 to 1", "series": "s", "share": 0.5}], "nats"),
    ):
        spec = made.vega()
        assert spec["width"] == "container"
        assert len(spec["data"]["values"]) == len(made.rows)
        assert set(made.heads) <= set(made.rows[0])
        json.dumps(spec, allow_nan=False)


def test_colors_and_shapes_stay_with_their_groups_where_one_is_absent():
    rows = [row("x", 1, 0, 2, group="a"), row("y", 1, 0, 2, group="c")]
    points = intervals("t", rows, "nats", groups=COLORS).spec["layer"][-1]["encoding"]
    assert points["color"]["scale"]["range"] == ["var(--blue)", "var(--green)"]
    assert points["shape"]["scale"]["range"] == [STYLES[0][1], STYLES[2][1]]
    assert points["color"]["legend"] is not None
    one = intervals("t", rows[:1], "nats", groups=COLORS).spec["layer"][-1]["encoding"]
    assert one["color"]["legend"] is None


def test_a_wide_range_has_ticks_at_powers_of_ten_where_something_is():
    rows = [row("x", 1.4, 1.3, 1.5, group="a"), row("y", -0.001, -0.003, 0.0005, group="a")]
    made = intervals("t", rows, "nats", groups=COLORS, wide_range=0.001)
    axis = made.spec["layer"][-1]["encoding"]["x"]["axis"]
    assert axis["values"] == pytest.approx([-0.001, 0, 0.001, 0.01, 0.1, 1])


def test_where_there_is_no_interval_none_is_drawn():
    bare = row("x", 1.0, None, None, group="a", series="k1", at=0.0, tokens=1)
    for made in (intervals("t", [bare], "n", groups=COLORS), bands("t", [bare], "x", "n")):
        marks = [layer["mark"]["type"] for layer in made.spec["layer"]]
        assert "area" not in marks
        assert marks.count("rule") == 1  # the one at 0


def test_a_band_that_would_hide_the_rest_is_cut_and_said_to_be():
    rows = [row(str(i), 0.1, 0.09, 0.11, series="k1", at=float(i), tokens=9) for i in range(8)]
    even = bands("t", rows, "x", "nats")
    assert even.note == ""
    made = bands("t", [*rows, row("8", 0.1, -9.0, 9.0, series="k1", at=8.0, tokens=1)], "x", "nats")
    low, high = made.spec["layer"][-1]["encoding"]["y"]["scale"]["domain"]
    assert -0.2 < low < 0
    assert 0.11 < high < 0.3
    assert made.note == "1 interval reaches beyond the picture; the table has it all."
    assert made.rows[-1]["high"] == 9.0


def test_only_the_first_series_has_a_band_and_each_has_its_own_dashes():
    rows = [
        row("0", 0.1, 0.0, 0.2, series=series, at=0.0, tokens=9) for series in ("k1", "k3", "exact")
    ]
    _, area, line, points = bands("t", rows, "x", "nats").spec["layer"]
    assert area["transform"][0] == {"filter": {"field": "series", "equal": "k1"}}
    assert len({str(one) for one in line["encoding"]["strokeDash"]["scale"]["range"]}) == 3
    assert len(set(points["encoding"]["shape"]["scale"]["range"])) == 3


def test_names_keep_their_order_along_the_axis():
    rows = [row(name, 1, 0, 2, series="k1", at=None, tokens=1) for name in ("b", "a")]
    axis = bands("t", rows, "task", "nats", names=True).spec["layer"][-1]["encoding"]["x"]
    assert (axis["type"], axis["sort"]) == ("ordinal", None)


def test_numbers_at_the_end_of_float64_leave_the_axis_to_the_browser():
    rows = [
        row(str(i), x, -x, x, series="k1", at=i, tokens=1) for i, x in enumerate((1e308, -1e308))
    ]
    made = bands("t", rows, "x", "nats")
    json.dumps(made.vega(), allow_nan=False)
    assert made.spec["layer"][-1]["encoding"]["y"]["scale"] == {}
