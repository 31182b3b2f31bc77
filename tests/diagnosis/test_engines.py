from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.diagnosis.engines import diagnose_engines
from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.estimation.summary import summarize

SHAPE = (64, 32)


def loop(engine: float = 0.05, update: float = 0.1, turned: float = 0.0) -> Columns:
    rng = np.random.default_rng(0)
    old = -rng.gamma(1.0, 2.0, size=SHAPE)
    rollout = old + turned * (old - old.mean()) + engine * rng.standard_normal(SHAPE)
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


def test_more_than_noise_is_told_with_what_it_can_be_and_accuses_nobody() -> None:
    (finding,) = told(loop(engine=0.5))
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


@pytest.mark.parametrize("turned", [0.1, -0.1])
def test_a_small_difference_that_has_a_direction_is_no_noise(turned) -> None:
    (finding,) = told(loop(turned=turned))
    assert (finding.severity, finding.accuses) == ("warning", False)
    assert finding.numbers["root_mean_square"] < 0.3
    assert "not what kernels or precision make" in finding.claim
    assert "the log-probs of old have a slope of" in finding.claim


def test_nor_is_one_that_goes_one_way() -> None:
    columns = loop()
    log_probs = {**columns.log_probs, "old": columns.log_probs["rollout"] - 0.05}
    (finding,) = told(replace(columns, log_probs=log_probs))
    assert "The mean of old/rollout is 0.9512, where noise leaves it at 1." in finding.claim


def test_a_little_noise_that_is_known_explains_no_large_difference(monkeypatch) -> None:
    noise = {"rollout": 0.04**2}
    monkeypatch.setattr("kullback.diagnosis.engines.noises", lambda _: noise)
    assert told(loop(engine=0.05)) == ()
    assert told(loop(engine=0.5))


def test_of_one_prompt_or_a_few_tokens_no_direction_is_told() -> None:
    columns = loop()
    log_probs = {**columns.log_probs, "old": columns.log_probs["rollout"] - 0.05}
    assert not any(
        one.severity == "warning"
        for one in told(replace(columns, log_probs=log_probs).take(slice(1)))
    )
