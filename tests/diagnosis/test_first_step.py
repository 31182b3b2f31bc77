from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.columns import Columns, pack
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.diagnosis.first_step import diagnose_first_step
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

SHAPE = (64, 32)

CODE = "reference-not-start"


def start(step: int | None = 0, drift: float = 0.3, engine: float = 0.0, **more: float) -> Columns:
    rng = np.random.default_rng(0)
    old = -rng.gamma(1.0, 2.0, size=SHAPE)
    roles = {
        "rollout": old + engine * rng.standard_normal(SHAPE),
        "old": old,
        "reference": old + drift * rng.standard_normal(SHAPE),
    }
    roles |= {role: old + size * rng.standard_normal(SHAPE) for role, size in more.items()}
    labels = {} if step is None else {"step": np.full(SHAPE[0], step)}
    return replace(pack(roles), labels=labels)


def looked(columns: Columns, found: Diagnosis | None = None) -> tuple[Any, Check]:
    diagnosis = diagnose_first_step(summarize([columns]), found or Diagnosis())
    (check,) = diagnosis.checks
    return next(iter(diagnosis.findings), None), check


def without(columns: Columns, *roles: str) -> Columns:
    left = {role: values for role, values in columns.log_probs.items() if role not in roles}
    return replace(columns, log_probs=left)


def test_a_reference_that_is_not_the_start_is_told_by_its_kl_at_step_0() -> None:
    finding, check = looked(start())
    assert (finding.code, finding.severity, check.status) == (CODE, "warning", "failed")
    assert finding.claim.startswith("By its label this is step 0, before any update, and old is")
    assert finding.numbers["role"] == "old"
    assert not finding.accuses
    assert finding.questions == ("KL(rollout||reference)", "KL(old||reference) ~ rollout")


def test_equal_roles_pass() -> None:
    finding, check = looked(start(drift=0.0))
    assert (finding, check.status) == (None, "passed")
    assert "equal at all 2048 tokens" in check.reason


def test_noise_of_two_evaluations_passes() -> None:
    assert looked(start(drift=0.05))[1].status == "passed"
    # Engine and trainer differ by as much, and their weights are equal.
    finding, check = looked(start(drift=0.3, engine=0.3))
    assert (finding, check.status) == (None, "passed")


def test_the_engine_stands_for_the_start_where_old_is_not_logged_and_says_so() -> None:
    finding, _ = looked(without(start(), "old"))
    assert "temperature or top-p" in finding.claim
    assert looked(without(start(drift=0.12), "old"))[1].status == "passed"
    assert looked(start(drift=0.12))[1].status == "failed"
    only = without(start(current=0.3, drift=0.0), "old", "rollout")
    assert "logged after its update" in looked(only)[0].claim


def test_step_1_may_be_the_first_and_later_ones_are_not() -> None:
    finding, _ = looked(start(step=1))
    assert "if steps are counted from 1" in finding.claim
    for step in (2, None):
        finding, check = looked(start(step=step))
        assert (finding, check.status) == (None, "not-possible")


def test_faults_of_the_two_columns_come_first() -> None:
    fault = Finding(
        "shifted-by-one", "error", "likely", "Off.", "All.", "Shift.", ("KL(old||reference)",)
    )
    finding, check = looked(start(), Diagnosis((fault,)))
    assert (finding, check.status) == (None, "not-possible")


def test_without_a_reference_there_is_nothing_to_look_for() -> None:
    columns = without(start(), "reference")
    assert diagnose_first_step(summarize([columns]), Diagnosis()) == Diagnosis()


@pytest.mark.parametrize("name", ["smooth", "holes_in_policy", "training_loop"])
def test_the_fault_is_told_in_every_world(name: str) -> None:
    world = CLEAN_WORLDS[name](64)
    assert isinstance(world, Mixture)
    columns = FAULTS["reference-not-start"].inject(world, np.random.default_rng(0))
    assert CODE in {finding.code for finding in diagnose(summarize([columns])).findings}


def test_real_rollouts_of_step_0_pass_and_another_model_does_not() -> None:
    (columns,) = kb.read(kb.demo_path())
    good = np.setdiff1d(np.arange(len(columns.lengths)), (7, 49, 67, 80))
    columns = columns.take(good)
    assert looked(columns)[1].status == "passed"
    strong = {**columns.log_probs, "reference": columns.log_probs["strong"]}
    assert looked(replace(columns, log_probs=strong))[1].status == "failed"
