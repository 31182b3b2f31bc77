from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kullback as kb
from kullback.cli.report import demo_report
from kullback.reporting.policies import HEADS, as_data, lines, printed, rows, section
from kullback.worlds import CLEAN_WORLDS


@pytest.fixture(scope="module")
def asked():
    return demo_report(policies=True)


def test_every_pair_has_a_line_and_says_which_column_to_read(asked):
    found = {row[0]: row for row in rows(asked)}
    assert list(found) == [
        *(f"rollout||{role}" for role in ("old", "current", "reference")),
        *("old||current", "old||reference", "current||reference"),
    ]
    assert [row[HEADS.index("read")] for row in found.values()] == [*["own"] * 5, "token"]
    assert found["current||reference"][1:4] == ("-0.0296", "0.0319", "0.0415")


def test_the_drift_is_a_sum_in_one_sentence(asked):
    (said,) = lines(asked)
    assert said.startswith("Drift: KL(rollout||current) is 0.0472 by k1 = engine and staleness")
    assert said.endswith("the versions of the weights are not logged.")


def test_the_page_draws_the_parts_along_an_axis_with_more_than_one_cell(asked):
    shown = section(asked)
    assert "The parts of the drift by position" in shown
    assert "by step" not in shown
    assert "without a weight it estimates KL(rollout||reference) − KL(rollout||current)" in shown


def test_what_was_not_asked_is_a_dash_and_the_way_to_ask_is_told():
    report = demo_report()
    (last,) = [row for row in rows(report) if row[0] == "current||reference"]
    assert last[HEADS.index("own")] == "–"
    assert "--policies" in str(printed(report).caption)


def test_two_policies_have_no_table():
    pair = CLEAN_WORLDS["smooth"](4).sample(np.random.default_rng(0))
    summary = kb.summarize([pair])
    assert as_data(summary, 0.95) is None
    report = {"policies": None}
    assert (section(report), lines(report)) == ("", [])


def test_three_parts_are_three_in_the_sentence():
    world = CLEAN_WORLDS["training_loop"](16)
    batches = []
    for behind in (0, 3):
        columns = world.sample(np.random.default_rng(behind))
        versions = np.full(len(columns), 10 - behind)
        step = np.full(len(columns.lengths), 10)
        batches.append(replace(columns, versions=versions, labels={"step": step}))
    summary = kb.summarize(batches, by=["staleness"])
    (said,) = lines({"policies": as_data(summary, 0.95)})
    assert "engine" in said
    assert " + staleness " in said
    assert said.count(" + ") == 2
