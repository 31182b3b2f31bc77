from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.diagnosis.engines import diagnose_engines
from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.estimation.summary import summarize

SHAPE = (64, 32)


def loop(engine: float = 0.05, update: float = 0.1, factor: float = 1.0) -> Columns:
    rng = np.random.default_rng(0)
    old = -rng.gamma(1.0, 2.0, size=SHAPE)
    rollout = factor * old + engine * rng.standard_normal(SHAPE)
    return pack(
        {
            "rollout": np.minimum(rollout, 0),
            "old": old,
            "current": old + update * rng.standard_normal(SHAPE),
        }
    )


def told(columns: Columns, found: Diagnosis | None = None) -> tuple[Finding, ...]:
    return diagnose_engines(summarize([columns]), found or Diagnosis()).findings


def test_noise_between_engine_and_trainer_is_told_where_it_is_part_of_an_updates_kl() -> None:
    (finding,) = told(loop())
    assert finding.code == "stochastic-forward"
    assert (finding.severity, finding.accuses) == ("note", False)
    assert finding.questions == ("KL(rollout||current)",)
    assert finding.numbers["k3"] == pytest.approx(0.05**2 / 2, rel=0.1)
    assert "19%" in finding.claim


def test_it_is_silent_where_it_hardly_counts_or_the_two_are_equal() -> None:
    assert told(loop(update=0.5)) == ()
    assert told(loop(engine=0.0)) == ()


@pytest.mark.parametrize("apart", [{"factor": 1.25}, {"engine": 0.5}])
def test_more_than_noise_is_told_with_what_it_can_be_and_accuses_nobody(apart) -> None:
    (finding,) = told(loop(**apart))
    assert (finding.severity, finding.accuses) == ("warning", False)
    assert finding.questions == ("KL(rollout||old)",)
    assert "another temperature" in finding.claim
    assert finding.numbers["root_mean_square"] > 0.3


def test_older_weights_and_faults_explain_it() -> None:
    columns = loop()
    old = replace(
        columns,
        versions=np.zeros(len(columns), dtype=np.int64),
        labels={"step": np.full(len(columns.lengths), 2)},
    )
    assert told(old) == ()
    fault = Finding(
        "shifted-by-one", "error", "likely", "Off.", "All.", "Shift.", ("KL(rollout||old)",)
    )
    assert told(columns, Diagnosis((fault,))) == ()


def test_other_roles_are_not_said_to_be_equal() -> None:
    columns = loop()
    renamed = {"rollout": "rollout", "old": "reference", "current": "current"}
    roles = {renamed[role]: values for role, values in columns.log_probs.items()}
    assert told(replace(columns, log_probs=roles)) == ()
