from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kullback.columns import pack
from kullback.diagnosis.finding import Check
from kullback.diagnosis.precision import diagnose_precision
from kullback.estimation.summary import summarize
from kullback.worlds.faults import rounded_to_bf16

SHAPE = (64, 32)

CODE = "precision-floor"


def log_probs(seed: int = 0) -> np.ndarray:
    return -np.random.default_rng(seed).gamma(1.0, 2.0, size=SHAPE)


def noise(size: float) -> np.ndarray:
    return size * np.random.default_rng(1).standard_normal(SHAPE)


def found(**roles: np.ndarray) -> tuple[Any, Check]:
    diagnosis = diagnose_precision(summarize([pack(roles)]))
    (check,) = diagnosis.checks
    return next(iter(diagnosis.findings), None), check


def test_a_kl_that_rounding_alone_makes_is_the_formats() -> None:
    own = log_probs()
    finding, check = found(rollout=own, old=rounded_to_bf16(own))
    assert (finding.code, finding.severity, check.status) == (CODE, "warning", "failed")
    assert finding.questions == ("KL(rollout||old)",)
    assert finding.numbers["grids"]["old"]["grid"] == "bfloat16"
    (floor,), (k3,) = finding.numbers["floors"].values(), finding.numbers["k3"].values()
    assert floor == pytest.approx(k3, rel=0.1)
    assert "the format's, not drift's" in finding.claim
    assert not finding.accuses


@pytest.mark.parametrize(
    ("grid", "rounded"),
    [
        ("float16", lambda x: x.astype(np.float16).astype(np.float64)),
        ("2 decimals", lambda x: np.round(x, 2)),
        ("3 decimals", lambda x: np.round(x, 3)),
    ],
)
def test_other_grids_have_their_floor_too(grid, rounded) -> None:
    own = log_probs()
    finding, _ = found(rollout=own, old=rounded(own))
    assert finding.numbers["grids"]["old"]["grid"] == grid
    (floor,), (k3,) = finding.numbers["floors"].values(), finding.numbers["k3"].values()
    assert floor == pytest.approx(k3, rel=0.1)


def test_both_sides_rounded_hide_what_is_less_than_a_step() -> None:
    own = log_probs()
    sides = {"rollout": rounded_to_bf16(own), "old": rounded_to_bf16(own + noise(5e-4))}
    finding, _ = found(**sides)
    assert finding.severity == "warning"
    assert finding.numbers["grids"].keys() == {"rollout", "old"}


def test_a_kl_far_above_the_floor_is_touched_by_no_more_than_a_note() -> None:
    own = log_probs()
    finding, check = found(rollout=own, old=rounded_to_bf16(own + noise(0.3)))
    assert (finding.severity, finding.questions, check.status) == ("note", (), "passed")
    finding, check = found(rollout=own, old=rounded_to_bf16(own + noise(0.01)))
    assert (finding.severity, finding.questions) == ("note", ("KL(rollout||old)",))
    assert "decides the other way" in finding.cost


def test_what_kernels_differ_by_cannot_be_told_from_0() -> None:
    own = log_probs()
    finding, check = found(rollout=own, old=own + noise(2e-5))
    assert (finding.severity, check.status) == ("note", "failed")
    assert "cannot be told from 0" in finding.claim
    finding, check = found(rollout=own, old=own + noise(2e-4))
    assert (finding, check.status) == (None, "passed")


def test_equal_roles_are_equal() -> None:
    own = log_probs()
    finding, check = found(rollout=own, old=own)
    assert (finding, check.status) == (None, "passed")
    assert "equal at every token" in check.reason
    rounded = rounded_to_bf16(own)
    finding, check = found(rollout=rounded, old=rounded)
    assert (finding.severity, finding.questions, check.status) == ("note", (), "passed")


def test_few_round_numbers_are_nothing_strange_and_few_of_a_narrow_format_are() -> None:
    finding, check = found(rollout=np.full((4, 4), -1.0), old=np.full((4, 4), -1.5))
    assert (finding, check.status) == (None, "passed")
    own = log_probs()[:1, :5]
    finding, check = found(rollout=own, old=rounded_to_bf16(own))
    assert (finding.severity, check.status) == ("warning", "failed")


def test_nothing_to_compare_is_not_judged() -> None:
    finding, check = found(rollout=np.full((4, 4), -1.0), old=np.full((4, 4), np.nan))
    assert (finding, check.status) == (None, "not-possible")


def test_what_is_no_log_prob_is_not_judged() -> None:
    own = log_probs()
    finding, _ = found(rollout=own, old=np.round(np.exp(own), 2))
    assert finding is None
