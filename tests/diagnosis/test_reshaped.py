from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import pack
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.reshaped import added_up, diagnose_reshaped, floored
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, Mixture

NAMES = ["smooth", "random_lengths", "training_loop", "strong_drift"]


def sample(name: str):
    return cast(Mixture, CLEAN_WORLDS[name](64)).sample(np.random.default_rng(0))


def changed(columns, role, values):
    return replace(columns, log_probs={**columns.log_probs, role: values})


def findings(columns):
    return [one for one in diagnose(summarize([columns])).findings if one.severity != "note"]


@pytest.mark.parametrize("name", NAMES)
def test_sums_along_the_sequence_are_no_log_probs(name):
    columns = sample(name)
    values = columns.log_probs["reference"].copy()
    for start, end in zip(columns.starts, columns.ends, strict=True):
        values[start:end] = np.cumsum(values[start:end])
    (first, *_) = findings(changed(columns, "reference", values))
    assert first.code == "not-log-probs"
    assert "sums from the start" in first.claim


@pytest.mark.parametrize("floor", [-5.0, -6.5])
@pytest.mark.parametrize("name", NAMES)
def test_a_floor_is_found_and_nobody_is_accused_for_it(name, floor):
    columns = sample(name)
    cut = changed(columns, "reference", np.maximum(columns.log_probs["reference"], floor))
    found = diagnose(summarize([cut]))
    assert not found.accused
    (first,) = [one for one in found.findings if one.code == "clamp-active"]
    assert (first.severity, first.numbers["floor"]) == ("warning", floor)


def along(columns, change):
    """Every role's log-probs, changed sequence by sequence."""
    spans = list(zip(columns.starts, columns.ends, strict=True))
    log_probs = {
        role: np.concatenate([change(values[start:end]) for start, end in spans])
        for role, values in columns.log_probs.items()
    }
    return replace(columns, log_probs=log_probs)


def longer(name: str):
    """Ten times as surprising, so that sums are beyond what a policy finds of its own draws."""
    columns = sample(name)
    return replace(columns, log_probs={r: 10 * v for r, v in columns.log_probs.items()})


@pytest.mark.parametrize(
    ("change", "end"), [(np.cumsum, "start"), (lambda v: np.cumsum(v[::-1])[::-1], "end")]
)
def test_sums_of_every_role_are_told_once(change, end):
    (first, *_) = findings(along(longer("smooth"), change))
    assert first.code == "not-log-probs"
    assert f"sums from the {end}" in first.claim
    assert "The same fault is in" in first.claim


@pytest.mark.parametrize("change", [np.mean, np.sum])
def test_one_value_for_a_whole_sequence_is_a_mean_or_a_sum(change):
    (finding,) = findings(along(sample("smooth"), lambda v: np.full(len(v), change(v))))
    assert finding.code == "not-log-probs"
    assert "one value at all tokens of a sequence" in finding.claim


def test_a_floor_under_the_probability_is_a_floor():
    columns = sample("smooth")
    floor = np.log(1e-3)
    cut = changed(columns, "reference", np.maximum(columns.log_probs["reference"], floor))
    assert floored(summarize([cut]), "reference")


def test_clean_worlds_have_neither():
    for build in CLEAN_WORLDS.values():
        summary = summarize([build(16).sample(np.random.default_rng(0))])
        assert not diagnose_reshaped(summary).findings


def test_round_values_of_a_small_world_are_no_floor():
    rows = [[-2.0, -1.0, -2.0, -0.5]] * 10
    summary = summarize([pack({"old": rows, "reference": rows})])
    assert not floored(summary, "old")


def test_a_policy_that_grows_less_sure_is_not_added_up():
    falling = [np.linspace(-1.0, -5.0, 60)] * 5
    summary = summarize([pack({"old": falling, "reference": falling})])
    assert not added_up(summary, "old")  # nor does any other role rise


@pytest.mark.parametrize("name", NAMES)
def test_sums_to_the_end_and_of_the_whole_sequence_are_no_log_probs_either(name):
    columns = sample(name)
    values = columns.log_probs["reference"]
    for told, change in {
        "sums from the end of the sequence": lambda one: np.cumsum(one[::-1])[::-1],
        "a mean or a sum over the sequence": lambda one: np.full(len(one), one.mean()),
    }.items():
        spans = zip(columns.starts, columns.ends, strict=True)
        parts = np.concatenate([change(values[start:end]) for start, end in spans])
        (first, *_) = findings(changed(columns, "reference", parts))
        assert first.code == "not-log-probs"
        assert told in first.claim
