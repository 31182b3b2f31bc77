from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.diagnosis.finding import Check
from kullback.diagnosis.staleness import diagnose_staleness
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

ROLES = ("rollout", "old", "reference")

CODE = "stale"


def looked(versions=None, step=None, **labels) -> tuple[Any, Check]:
    columns = pack({role: np.full((2, 3), -1.0) for role in ROLES})
    labels |= {} if step is None else {"step": step}
    columns = replace(
        columns,
        versions=None if versions is None else np.array(versions).ravel(),
        labels={name: np.array(values) for name, values in labels.items()},
    )
    return of(columns)


def of(columns: Columns) -> tuple[Any, Check]:
    diagnosis = diagnose_staleness(summarize([columns]))
    (check,) = diagnosis.checks
    return next(iter(diagnosis.findings), None), check


def test_older_weights_are_told_with_the_questions_that_they_touch() -> None:
    finding, check = looked([[3, 3, 3], [5, 5, 4]], step=[5, 5])
    assert (finding.code, finding.severity, check.status) == (CODE, "note", "failed")
    assert finding.claim.startswith("4 of 6 tokens were sampled by weights older than their step")
    assert "1 of 2 sequences were sampled by several versions" in finding.claim
    assert finding.questions == ("KL(rollout||old)", "KL(old||reference) ~ rollout")
    assert finding.where == ("row 1, token 2",)
    assert not finding.accuses


def test_one_age_everywhere_may_be_a_way_of_counting() -> None:
    finding, _ = looked([[4, 4, 4], [4, 4, 4]], step=[5, 5])
    assert "how the two are counted" in finding.claim
    assert "how the two are counted" not in looked([[4, 4, 4], [3, 3, 3]], step=[5, 5])[0].claim


def test_fresh_weights_pass() -> None:
    finding, check = looked([[5, 5, 5], [6, 6, 6]], step=[5, 6])
    assert (finding, check.status) == (None, "passed")


def test_several_versions_are_told_without_a_step() -> None:
    assert looked([[3, 3, 4], [3, 3, 3]])[0].numbers["several"] == 1
    finding, check = looked([[3, 3, 3], [4, 4, 4]])
    assert (finding, check.status) == (None, "passed")


def test_versions_above_the_step_count_differently() -> None:
    finding, check = looked([[9, 9, 9], [3, 3, 3]], step=[5, 5])
    assert (finding, check.status) == (None, "not-possible")
    finding, check = looked([[9, 9, 8], [3, 3, 3]], step=[5, 5])
    assert "older than their step" not in finding.claim


def test_a_label_may_say_it_and_nothing_may() -> None:
    assert looked(staleness=[2, 0])[0].numbers["ages"] == {"0": 3, "2": 3}
    assert looked()[1].status == "not-possible"


@pytest.mark.parametrize("name", ["smooth", "holes_in_policy", "training_loop"])
def test_the_fault_is_told_in_every_world(name: str) -> None:
    world = CLEAN_WORLDS[name](16)
    assert isinstance(world, Mixture)
    finding, _ = of(FAULTS["stale"].inject(world, np.random.default_rng(0)))
    assert finding.numbers["ages"].keys() == {"4"}
