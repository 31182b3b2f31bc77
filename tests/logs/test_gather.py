from __future__ import annotations

import math

import pytest

from kullback.dumps.errors import DumpError
from kullback.logs.gather import Point, Points, as_number, flattened, series_of


def of(*steps: float, run: str = "") -> Points:
    return Points([Point(run, "kl", step, float(i), math.nan) for i, step in enumerate(steps)])


def test_after_a_restart_the_later_values_count():
    points = of(1, 2, 3, 4, 3, 4, 5)
    _, made = series_of("log", points, None)
    assert made["kl"].steps.tolist() == [1, 2, 3, 4, 5]
    assert made["kl"].values.tolist() == [0, 1, 4, 5, 6]
    assert points.notes == [
        "kl starts again at step 3: the later values count, and 2 earlier ones do not"
    ]
    assert made["kl"].restarts == (3.0,)


def test_two_restarts_are_counted():
    points = of(1, 2, 1, 2, 1)
    _, made = series_of("log", points, None)
    assert made["kl"].values.tolist() == [4]
    assert "2 times, last at step 1" in points.notes[0]


def test_series_that_start_again_together_are_told_in_one_note():
    points = [
        Point("", name, step, i, math.nan)
        for i, step in enumerate((1, 2, 1, 2))
        for name in ("kl", "loss", "reward")
    ]
    given = Points(points)
    series_of("log", given, None)
    assert given.notes == [
        "3 series (kl, …) start again at step 1: the later values count, and 2 earlier ones do "
        "not; if these are two runs, keep them in two folders"
    ]


def test_the_same_value_twice_at_one_step_is_one():
    points = Points([Point("", "kl", step, 0.5, math.nan) for step in (1, 1, 2)])
    _, made = series_of("log", points, None)
    assert made["kl"].steps.tolist() == [1, 2]
    assert made["kl"].restarts == ()


def test_a_step_that_is_logged_twice_stays():
    _, made = series_of("log", of(1, 1, 2), None)
    assert made["kl"].steps.tolist() == [1, 1, 2]


def test_runs_are_named_as_far_as_a_sentence_holds_them():
    points = Points([Point(f"run{i}", "kl", 0, 0, 0) for i in range(12)])
    with pytest.raises(DumpError, match=r"12 runs.* and 4 more"):
        series_of("log", points, None)


def test_nothing_is_no_log():
    with pytest.raises(DumpError, match="holds no number"):
        series_of("log", Points([]), None)


@pytest.mark.parametrize(
    ("given", "number"),
    [(1, 1.0), (2.5, 2.5), ("-Infinity", -math.inf), (True, None), (None, None), ("x", None),
     ([1], None), (10**400, math.inf), (-(10**400), -math.inf)],
)  # fmt: skip
def test_what_a_number_is(given, number):
    assert as_number(given) == number


def test_nan_is_a_number_that_was_logged():
    assert math.isnan(as_number("NaN") or 0.0)


def test_groups_are_paths():
    assert dict(flattened({"a": {"b": {"c": 1}}, "d": 2})) == {"a/b/c": 1, "d": 2}
