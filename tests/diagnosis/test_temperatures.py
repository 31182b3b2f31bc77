from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns, TopK, pack
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.temperatures import by_draws, diagnose_temperatures, line
from kullback.estimation.summary import summarize
from kullback.formulas.categorical import log_softmax
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture
from kullback.worlds.faults import rounded_to_bf16, with_policy
from kullback.worlds.tables import tempered

LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](16))
ROLLOUT = LOOP.log_probs["rollout"]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def hot(temperature: float = 0.8) -> Mixture:
    return with_policy(LOOP, "rollout", tempered(ROLLOUT, temperature))


def accused(columns: Columns) -> list:
    return [finding for finding in diagnose(summarize([columns])).findings if finding.accuses]


@pytest.mark.parametrize("temperature", [0.6, 0.8, 1.25])
def test_a_trainer_that_scores_at_1_is_told_with_the_ratio(temperature):
    (finding,) = accused(hot(temperature).sample(rng(), top_k=20))
    assert finding.code == "temperature-mismatch"
    ratio = finding.numbers["temperature_ratio"]["old"]
    error = finding.numbers["standard_error"]["old"]
    assert ratio == pytest.approx(temperature, abs=5 * error + 1e-3)
    assert "divide its logits by" in finding.advice
    assert "KL(rollout||old)" in finding.questions
    assert "KL(rollout||reference)" in finding.questions  # the sampler's temperature is in it


def test_one_finding_names_every_copy():
    world = with_policy(hot(), "current", LOOP.log_probs["old"])
    (finding,) = accused(world.sample(rng(), top_k=20))
    assert set(finding.numbers["temperature_ratio"]) == {"old", "current"}
    assert "So is current, at 0.8 times." in finding.claim


def test_a_reference_at_another_temperature_is_told_and_not_accused():
    world = cast(Mixture, CLEAN_WORLDS["flat_reference"](16))
    found = diagnose(summarize([world.sample(rng(), top_k=20)]))
    assert not found.accused
    (check,) = [c for c in found.checks if c.subject == "rollout and reference"
                and c.code == "temperature-mismatch"]  # fmt: skip
    assert check.status == "passed"
    assert "as one policy at 0.714 times the temperature. That may be meant" in check.reason


def test_an_update_that_sharpens_is_no_temperature():
    """Sharper by as much as 1.25 does it, and otherwise changed half as much."""
    noise = rng(5).standard_normal(ROLLOUT.shape)
    sharper = log_softmax(ROLLOUT / 0.8 + 0.2 * noise)
    world = with_policy(LOOP, "current", sharper)
    assert not accused(world.sample(rng(), top_k=20))


def test_bfloat16_heads_do_not_hide_it_nor_make_one():
    for world, found in ((hot(), 1), (LOOP, 0)):
        columns = world.sample(rng(), top_k=20)
        heads = {
            role: TopK(head.ids, rounded_to_bf16(head.log_probs))
            for role, head in columns.top_k.items()
        }
        assert len(accused(replace(columns, top_k=heads))) == found


def test_without_heads_the_ratio_is_conditional_and_nobody_is_accused():
    summary = summarize([hot().sample(rng())])
    found = diagnose_temperatures(summary)
    assert not found.findings
    check = next(c for c in found.checks if c.subject == "rollout and old")
    assert check.status == "not-possible"
    assert "if rollout and old differ by a temperature alone" in check.reason
    assert check.reason.endswith("log top_ids and top_log_probs")
    told = by_draws(summary.slopes["rollout", "old"])
    assert told is not None
    ratio, error = told
    assert abs(ratio - 0.8) < 5 * error < 0.1


def test_with_sampled_log_probs_alone_nothing_is_said_but_what_to_log():
    bare = replace(hot().sample(rng()), entropy={})
    (check,) = diagnose_temperatures(summarize([bare])).checks
    assert (check.subject, check.status) == ("rollout and old", "not-possible")
    assert check.reason.startswith("the heads of both show whether rollout and old are one policy")


def test_a_copy_scored_at_the_right_temperature_is_named_and_not_accused():
    """The engine drew at 0.8 and logged raw; the trainer scores at 0.8."""
    world = with_policy(LOOP, "old", tempered(LOOP.log_probs["old"], 0.8))
    draw = world.draw(rng(), tempered(ROLLOUT, 0.8))
    (finding,) = accused(world.logged(draw, top_k=20))
    assert finding.code == "temperature-mismatch"
    assert abs(finding.numbers["temperature"] - 0.8) < 5 * finding.numbers["standard_error"]
    assert "The log-probs of old are those at this temperature." in finding.claim
    assert finding.advice.startswith("Take old as the sampler")


def test_the_public_case_of_a_temperature_missing_in_the_trainer():
    """Four tokens at one prefix, logits over 0.7 against logits: the ratio is 0.7."""
    logits = np.array([2.0, 1.0, 0.2, -1.0])
    sides = {"rollout": log_softmax(logits / 0.7), "old": log_softmax(logits)}
    columns = replace(
        pack({role: [[values[0]]] for role, values in sides.items()}),
        tokens=np.array([0]),
        top_k={role: TopK(np.arange(4)[None], values[None]) for role, values in sides.items()},
    )
    (finding,) = accused(columns)
    assert finding.numbers["temperature_ratio"]["old"] == pytest.approx(0.7, rel=1e-9)
    assert json.dumps(finding.numbers)


def test_equal_policies_are_no_line_apart():
    columns = LOOP.sample(rng(), top_k=5)
    same = replace(columns, top_k=dict.fromkeys(columns.top_k, columns.top_k["rollout"]))
    found = line(summarize([same]).slopes["rollout", "old"])
    assert found is not None
    assert (found.slope, found.explained, found.chance) == (1.0, 0.0, 1.0)
    assert not found.is_temperature


def test_the_fault_of_the_worlds_is_this_one():
    assert FAULTS["trainer-temperature"].code == "temperature-mismatch"
    (finding,) = accused(FAULTS["trainer-temperature"].inject(LOOP, rng()))
    assert finding.code == "temperature-mismatch"
