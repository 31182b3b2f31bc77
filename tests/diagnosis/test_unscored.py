from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import pack
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.unscored import (
    closes_unscored,
    diagnose_unscored,
    never_scored,
    zeros_doubted,
)
from kullback.dumps import demo_path, read
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


def real():
    (columns,) = read(demo_path())
    roles = ("rollout", "old", "current", "reference")
    log_probs = {role: columns.log_probs[role].copy() for role in roles}
    return replace(columns, log_probs=log_probs, entropy={}, exact={}, top_k={}, text=None)


def accused(columns):
    return [one for one in diagnose(summarize([columns])).findings if one.accuses]


@pytest.mark.parametrize("role", ["rollout", "current", "reference"])
def test_scattered_zeros_that_the_others_doubt_are_no_certainty(role):
    columns = real()
    drawn = np.random.default_rng(0).random(len(columns)) < 0.02
    values = np.where(drawn, 0.0, columns.log_probs[role])
    (first,) = accused(with_role(columns, role, values))
    assert (first.code, first.numbers["tokens"]) == ("missing-values", drawn.sum())
    assert f"log-probs of {role} are 0 to the last digit" in first.claim
    assert all(role in question for question in first.questions) or role == "rollout"


def test_logits_less_the_largest_are_no_log_probs():
    columns = real()
    largest = np.where(columns.log_probs["current"] > -0.7, columns.log_probs["current"], -0.5)
    values = np.minimum(columns.log_probs["current"] - largest, 0.0)
    (first,) = accused(with_role(columns, "current", values))
    assert first.code == "missing-values"
    assert "lack their normalizer" in first.claim


def test_a_role_that_is_certain_and_misses_as_often_accuses_nobody():
    """At every third prefix it is certain of the likeliest token, and seldom that was drawn."""
    columns = real()
    rollout = columns.log_probs["rollout"]
    third = np.arange(len(columns)) % 3 == 0
    sure = np.where(np.exp(rollout) > 0.5, 0.0, -25.0)
    summary = summarize([with_role(columns, "reference", np.where(third, sure, rollout))])
    assert not zeros_doubted(summary, "reference")


def test_a_sampler_that_kept_a_single_token_is_certain_of_it():
    """Its copy gives it more than half."""
    columns = real()
    old = columns.log_probs["old"]
    kept = np.where(old > np.log(0.5), 0.0, columns.log_probs["rollout"])
    assert not zeros_doubted(summarize([with_role(columns, "rollout", kept)]), "rollout")


@pytest.mark.parametrize("every", [1, 5])
def test_a_limit_that_one_role_has_sooner_leaves_zeros_at_the_ends(every):
    columns = real()
    late = (columns.position_of_token >= 40) & (columns.sequence_of_token % every == 0)
    values = np.where(late, 0.0, columns.log_probs["current"])
    (first,) = accused(with_role(columns, "current", values))
    assert first.code == "missing-values"
    assert "sequences end in a log-prob of 0 for current" in first.claim
    assert first.numbers["tokens"] == late.sum()
