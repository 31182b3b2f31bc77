from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.reporting.step_figures import series_figure
from kullback.reporting.steps import steps_document


def figure(values, name: str = "kl"):
    [one] = steps_document(kb.judge_log(kb.StepLog.of({name: values})))["series"]
    made = series_figure(one)
    assert made is not None
    return made


def steady(steps: int = 60) -> np.ndarray:
    return 0.05 + 0.001 * np.random.default_rng(0).standard_normal(steps)


def test_an_event_is_a_mark_and_in_the_title():
    values = steady()
    values[20] = 50.0
    values[40:] += 0.2
    made = figure(values)
    assert made.title == "kl: 1 spike, a new level at step 40."
    assert [row["event"] for row in made.rows if row["event"] != "–"] == ["spike", "new level"]
    assert len(made.spec["layer"]) == 5


def test_without_events_there_is_no_layer_of_them():
    made = figure(steady())
    assert len(made.spec["layer"]) == 4
    assert made.title == "kl: no spike, no jump, never below 0."


def test_a_far_point_stands_at_the_edge_and_is_counted():
    values = steady()
    values[20] = 1e6
    made = figure(values)
    top = made.spec["layer"][2]["encoding"]["y"]["scale"]["domain"][1]
    assert top < 1
    assert max(row["shown"] for row in made.rows) < top
    assert "1 point beyond the picture stand" in made.note


def test_a_coefficient_of_many_sizes_is_drawn_by_powers_of_ten():
    made = figure(0.1 * 1.5 ** np.arange(40.0), "kl_coef")
    scales = [layer["encoding"]["y"]["scale"]["type"] for layer in made.spec["layer"]]
    assert set(scales) == {"log"}
    even = figure(np.full(40, 0.1), "kl_coef")
    assert "type" not in even.spec["layer"][2]["encoding"]["y"]["scale"]


@pytest.mark.parametrize("value", [0.0, 1e300, -1e300])
def test_a_constant_has_an_axis(value):
    low, high = figure(np.full(20, value)).spec["layer"][2]["encoding"]["y"]["scale"]["domain"]
    assert low < high
