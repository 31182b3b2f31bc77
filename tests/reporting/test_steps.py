from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import kullback as kb
from kullback.reporting.steps import DRAWN, steps_document
from kullback.reporting.write import as_json
from kullback.worlds.step_logs import LOG_FAULTS, NAMES, honest_log

SCHEMA = json.loads(files("kullback.reporting").joinpath("steps.schema.json").read_text())


def made(log, **how):
    return steps_document(kb.judge_log(kb.StepLog.of(log), **how))


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("fault", [None, *LOG_FAULTS])
def test_every_report_is_as_the_schema_says(fault):
    log = honest_log(np.random.default_rng(0))
    log = LOG_FAULTS[fault].inject(log, NAMES["verl"]) if fault else log
    report = made(log, framework="verl", tokens=None)
    jsonschema.validate(json.loads(as_json(report)), SCHEMA)
    assert report["schema"] == "kullback.steps/1"


def test_a_long_series_keeps_its_ends_and_events():
    values = 0.02 + 0.001 * np.random.default_rng(0).standard_normal(20_000)
    values[777] = 5.0
    [one] = made({"kl": values})["series"]
    held = one["points"]
    assert len(held["steps"]) <= DRAWN + 2
    assert one["spikes"] == [777.0]
    assert 777.0 in held["steps"]
    assert min(held["values"]) == values.min()


def test_what_is_no_number_is_none():
    [one] = made({"kl": [np.nan, np.nan]})["series"]
    assert one["first"] is one["level"] is one["noise"] is None
    assert one["not_finite"] == 2
    assert made({"kl": []})["series"][0]["mean"] is None


def test_a_log_without_a_kl_says_so():
    report = made({"loss": [1.0, 2.0]})
    assert report["headline"].startswith("No KL is known among 1 series over 2 steps: kullback ")


def test_the_same_log_gives_the_same_text():
    log = honest_log(np.random.default_rng(0))
    assert as_json(made(log)) == as_json(made(log))
