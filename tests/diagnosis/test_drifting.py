from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.drifting import CODE, LARGE, MANY, diagnose_drift
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, logged_by_step, small_steps
from kullback.worlds.tables import drifted, zipf

START = zipf(np.random.default_rng(1), contexts=32, alphabet=200)
SIZES: dict[str, Any] = {"prompts": 24, "sequences_per_prompt": 4, "max_length": 40}
WAY = Question("current", "reference")


def run_of(straight: bool, steps: int, size: float = 0.05):
    rng = np.random.default_rng(3)
    return small_steps(rng, START, steps=steps, size=size, straight=straight, **SIZES)


def batches_of(run, every: int = 1):
    return logged_by_step(np.random.default_rng(4), run, every)


def told(batches):
    return diagnose_drift(summarize(batches, by=["step"]))


def test_a_straight_way_behind_small_steps_is_told_with_its_numbers():
    run = run_of(True, 24)
    found = told(batches_of(run))
    (finding,) = found.findings
    assert finding.code == "drift-behind-small-steps"
    assert not finding.accuses
    assert finding.severity == "warning"
    exact = run[-1].exact(WAY)
    assert exact > LARGE
    assert finding.numbers["from_reference"] == pytest.approx(exact, rel=0.1)
    assert finding.numbers["shape"] == "straight"
    assert "It looks straight: the distance is" in finding.claim
    assert [check.status for check in found.checks] == ["failed"]


def test_no_rule_on_a_step_fires_and_one_on_the_way_has_fired_long_ago():
    run = run_of(True, 24)
    (finding,) = told(batches_of(run)).findings
    limit = MANY * finding.numbers["largest_step"]
    since = int(finding.numbers["above_ten_steps_since"])
    assert max(world.exact(Question("old", "current")) for world in run) < limit / MANY
    assert run[since].exact(WAY) > limit
    assert since < 12


def test_a_random_walk_of_many_steps_is_a_note():
    (finding,) = told(batches_of(run_of(False, 100))).findings
    assert finding.severity == "note"
    assert finding.numbers["shape"] == "walk"


@pytest.mark.parametrize(("straight", "steps"), [(True, 2), (True, 3), (False, 8)])
def test_a_short_way_is_none(straight, steps):
    found = told(batches_of(run_of(straight, steps)))
    assert found.findings == ()
    assert [check.status for check in found.checks] == ["passed"]


def test_a_run_that_has_converged_is_told_nothing_however_far_it_is():
    elsewhere = drifted(np.random.default_rng(6), START, 0.8)
    run = [
        replace(world, log_probs={**world.log_probs, "reference": elsewhere})
        for world in run_of(False, 12, size=0.02)
    ]
    found = told(batches_of(run))
    assert found.findings == ()
    assert run[-1].exact(WAY) > 100 * run[-1].exact(Question("old", "current"))


def test_a_run_that_came_back_is_told_nothing():
    out = run_of(True, 12)
    back = [
        replace(world, log_probs={
            "old": world.log_probs["current"],
            "current": world.log_probs["old"],
            "reference": START,
        })
        for world in reversed(out)
    ]  # fmt: skip
    assert told(batches_of([*out, *back])).findings == ()


def test_one_large_step_among_small_ones_is_for_a_rule_on_the_step():
    run = run_of(False, 8)
    jump = drifted(np.random.default_rng(8), run[-1].log_probs["old"], 0.7)
    last = replace(run[-1], log_probs={**run[-1].log_probs, "current": jump})
    assert told(batches_of([*run[:-1], last])).findings == ()


def test_steps_that_are_left_out_do_not_hide_the_way():
    (finding,) = told(batches_of(run_of(True, 31), every=10)).findings
    assert finding.numbers["steps"] == 4
    assert "cannot be told: not every step is there" in finding.claim


@pytest.mark.parametrize("name", CLEAN_WORLDS)
def test_one_step_is_no_run(name):
    batch = CLEAN_WORLDS[name](16).sample(np.random.default_rng(0))
    numbered = replace(batch, labels={"step": np.full(len(batch.lengths), 3)})
    for one in (batch, numbered):
        found = diagnose(summarize([one], also=["step"]))
        assert CODE not in {entry.code for entry in (*found.findings, *found.checks)}


@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("current", "log log-probs of current, the policy after the step"),
        ("reference", "log log-probs of reference, a policy that stays where the run began"),
        ("old", "log log-probs of old or rollout, the policy before the step"),
    ],
)
def test_what_is_not_logged_is_named(role, said):
    batches = [
        replace(batch, log_probs={r: v for r, v in batch.log_probs.items() if r != role})
        for batch in batches_of(run_of(True, 4))
    ]
    found = told(batches)
    (check,) = found.checks
    assert (found.findings, check.status) == ((), "not-possible")
    assert said in check.reason


def test_two_engines_alone_lack_both():
    batches = [
        replace(batch, log_probs={
            "rollout": batch.log_probs["old"], "old": batch.log_probs["current"]
        })
        for batch in batches_of(run_of(True, 4))
    ]  # fmt: skip
    (check,) = told(batches).checks
    assert "of current, the policy after the step, of reference" in check.reason


def test_what_was_logged_and_not_asked_is_to_be_asked():
    asked = [Question("old", "reference"), WAY]
    (check,) = diagnose_drift(
        summarize(batches_of(run_of(True, 4)), questions=asked, by=["step"])
    ).checks
    assert (check.status, "were not both asked" in check.reason) == ("not-possible", True)


def test_current_that_was_scored_before_the_update_has_no_steps():
    batches = [
        replace(batch, log_probs={**batch.log_probs, "current": batch.log_probs["old"]})
        for batch in batches_of(run_of(True, 12))
    ]
    (check,) = told(batches).checks
    assert (check.status, "after the update" in check.reason) == ("not-possible", True)


def test_one_prompt_for_each_step_has_no_interval():
    lone = {**SIZES, "prompts": 1}
    run = small_steps(np.random.default_rng(3), START, steps=12, size=0.05, **lone)
    (check,) = told(batches_of(run)).checks
    assert (check.status, "more prompts" in check.reason) == ("not-possible", True)


def test_a_step_that_is_infinite_is_not_taken_for_a_small_one():
    batches = batches_of(run_of(True, 24))
    holed = batches[5].log_probs["current"].copy()
    holed[7] = -np.inf
    batches[5] = replace(batches[5], log_probs={**batches[5].log_probs, "current": holed})
    found = told(batches)
    (check,) = found.checks
    assert (found.findings, check.status) == ((), "not-possible")
    assert check.reason.startswith("1 of 24 steps have no interval, the first is 5:")
