from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import pack
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.unscored import closes_unscored, diagnose_unscored, never_scored
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, Mixture

NAMES = ["smooth", "random_lengths", "training_loop", "holes_in_policy"]


def world(name: str) -> Mixture:
    return cast(Mixture, CLEAN_WORLDS[name](64))


def with_role(columns, role, values):
    return replace(columns, log_probs={**columns.log_probs, role: values})


def last_is_zero(columns, role):
    values = columns.log_probs[role].copy()
    values[columns.ends - 1] = 0.0
    return with_role(columns, role, values)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", [0, -1])
def test_a_last_token_that_one_role_did_not_score_is_found_alone(name, which):
    columns = world(name).sample(np.random.default_rng(0))
    role = list(columns.log_probs)[which]
    found = diagnose(summarize([last_is_zero(columns, role)]))
    (first,) = [one for one in found.findings if one.accuses]
    assert first.code == "missing-values"
    assert f"log-prob of 0 for {role}" in first.claim
    assert first.numbers["sequences"] == (columns.lengths > 1).sum()


@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_zeros_was_never_computed(name):
    columns = world(name).sample(np.random.default_rng(0))
    zeros = with_role(columns, "reference", np.zeros(len(columns)))
    (first,) = [one for one in diagnose(summarize([zeros])).findings if one.accuses]
    assert (first.code, first.certainty) == ("missing-values", "certain")
    assert "never computed" in first.claim


def test_clean_worlds_have_neither():
    for build in CLEAN_WORLDS.values():
        summary = summarize([build(16).sample(np.random.default_rng(0))])
        assert not diagnose_unscored(summary).findings


def test_a_uniform_policy_and_certain_ones_are_no_fault():
    rng = np.random.default_rng(0)
    drawn = [rng.normal(-1.0, 0.3, 30) for _ in range(30)]
    uniform = pack({"old": drawn, "reference": [np.full(30, -np.log(5.0))] * 30})
    assert not never_scored(summarize([uniform]), "reference")
    sure = pack({"old": [np.zeros(30)] * 30, "reference": [np.zeros(30)] * 30})
    assert not never_scored(summarize([sure]), "reference")


def test_an_end_that_all_are_sure_of_is_no_fault():
    rng = np.random.default_rng(0)
    rows = [np.append(rng.normal(-2.0, 0.3, 20), 0.0) for _ in range(40)]
    near = [np.append(row[:-1] + 0.01, -1e-4) for row in rows]
    summary = summarize([pack({"old": rows, "reference": near})])
    assert not closes_unscored(summary, "old")


def test_a_few_rows_prove_nothing():
    rows = [[-1.0, -2.0, 0.0]] * 5
    summary = summarize([pack({"old": rows, "reference": [[-1.0, -2.0, -1.0]] * 5})])
    assert not closes_unscored(summary, "old")


def some_rows_zero(columns, role, every=16):
    values = columns.log_probs[role].copy()
    for start, end in zip(columns.starts[::every], columns.ends[::every], strict=True):
        values[start:end] = 0.0
    return with_role(columns, role, values)


def test_whole_sequences_of_zeros_were_never_computed_and_are_found_alone():
    columns = some_rows_zero(world("training_loop").sample(np.random.default_rng(0)), "reference")
    columns = replace(columns, entropy={}, top_k={}, exact={})
    (first,) = [one for one in diagnose(summarize([columns])).findings if one.accuses]
    assert first.code == "missing-values"
    assert "for reference from end to end" in first.claim
    assert all("reference" in question for question in first.questions)


def test_sequences_that_the_sampler_drew_at_temperature_0_are_not_called_so():
    columns = some_rows_zero(world("training_loop").sample(np.random.default_rng(0)), "rollout")
    found = diagnose_unscored(summarize([replace(columns, entropy={}, top_k={})])).findings
    assert not found
