from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

from kullback.estimation.summary import summarize
from kullback.reporting.document import document
from kullback.reporting.html import page
from kullback.reporting.step_drift import as_data, figure, section, title
from kullback.worlds import CLEAN_WORLDS, logged_by_step, small_steps
from kullback.worlds.tables import zipf

START = zipf(np.random.default_rng(1), contexts=32, alphabet=200)


def report_of(steps: int = 12, size: float = 0.05):
    rng = np.random.default_rng(3)
    run = small_steps(rng, START, steps=steps, size=size, prompts=24, max_length=40)
    return document(summarize(logged_by_step(rng, run), by=["step"]))


@pytest.fixture(scope="module")
def report():
    return report_of()


def test_the_steps_are_in_the_report_with_their_intervals(report):
    run = report["steps"]
    assert (run["step_question"], run["total_question"]) == (
        "KL(old||current)",
        "KL(current||reference) ~ old",
    )
    assert [one["number"] for one in run["steps"]] == list(range(12))
    assert run["steps"][0]["added"] == {"mean": None, "low": None, "high": None}
    for one in run["steps"]:
        assert one["step"]["low"] <= one["step"]["mean"] <= one["step"]["high"]
    by = {one["question"]["text"]: one["by"]["step"] for one in report["questions"]}
    for one, cell in zip(run["steps"], by["KL(old||current)"], strict=True):
        assert one["step"]["mean"] == cell["estimates"]["auto"]["mean"]


def test_the_report_is_what_its_schema_says(report):
    schema = json.loads(files("kullback.reporting").joinpath("report.schema.json").read_text())
    jsonschema.validate(report, schema)
    (told,) = [one for one in report["findings"] if one["code"] == "drift-behind-small-steps"]
    assert told["question"] is None  # no answer is wrong for it
    assert all("drift-behind" not in str(one["trust"]) for one in report["questions"])


def test_the_figure_has_three_lines_by_powers_of_ten(report):
    drawn = figure(report["steps"])
    assert drawn
    assert list(dict.fromkeys(row["series"] for row in drawn.rows)) == [
        "from the reference",
        "sum of the steps",
        "each step",
    ]
    line = drawn.spec["layer"][0]["encoding"]["y"]
    assert line["scale"]["type"] == "log"
    sums = [row["value"] for row in drawn.rows if row["series"] == "sum of the steps"]
    assert sums[-1] == pytest.approx(report["steps"]["sum_of_steps"])
    assert title(report["steps"]) == drawn.title
    assert "a straight way has 12" in drawn.note


def test_the_page_shows_it_beside_the_finding(report):
    shown = page(report)
    assert "Steps and way" in shown
    assert "drift-behind-small-steps" in shown


def test_what_noise_puts_below_0_is_left_out_of_the_figure(report):
    holed = dict(report["steps"])
    nothing = {"mean": -1e-4, "low": -1e-3, "high": 1e-3}
    holed["steps"] = [dict(one, step=nothing, total=nothing) for one in holed["steps"]]
    holed["shape"], holed["reason"] = "unknown", "not every step is there"
    assert figure(holed) is None
    assert "<table" in section({"steps": holed})


def test_no_run_no_section():
    pair = CLEAN_WORLDS["smooth"](4).sample(np.random.default_rng(0))
    assert as_data(summarize([pair]), 0.95) is None
    assert section({"steps": None}) == ""


def test_an_unknown_shape_says_why(report):
    run = report["steps"] | {"shape": "unknown", "reason": "not every step is there"}
    drawn = figure(run)
    assert drawn
    assert drawn.note.endswith("cannot be told: not every step is there.")
