from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import kullback as kb
from kullback.worlds.step_logs import LOG_FAULTS, NAMES, honest_log

RESULTS = Path(__file__).parents[2] / "results" / "step_logs.json"


@pytest.mark.parametrize("names", NAMES)
def test_honest_logs_are_not_accused(names):
    """results/step_logs.json holds 500 of each; here 20, none of which may."""
    for seed in range(20):
        rng = np.random.default_rng([7, seed])
        log = kb.StepLog.of(honest_log(rng, names, steps=int(rng.integers(20, 150))))
        found = kb.judge_log(log, framework=names or None)
        assert not found.diagnosis.accused, [one.claim for one in found.findings]


@pytest.mark.parametrize("fault", LOG_FAULTS)
def test_each_fault_is_named(fault):
    rng, entry = np.random.default_rng(1), LOG_FAULTS[fault]
    log = entry.inject(honest_log(rng), NAMES["verl"])
    found = kb.judge_log(kb.StepLog.of(log), framework="verl").findings
    assert entry.code in {one.code for one in found}
    assert {one.code for one in found if one.accuses} <= {entry.code}


def test_at_most_one_honest_log_in_a_hundred_was_accused():
    for cell in json.loads(RESULTS.read_text(encoding="utf-8"))["clean"].values():
        assert cell["accused"] <= 0.01 * cell["logs"]


def test_every_finding_is_whole_sentences():
    for fault in LOG_FAULTS.values():
        log = fault.inject(honest_log(np.random.default_rng(2)), NAMES["verl"])
        for one in kb.judge_log(kb.StepLog.of(log), framework="verl").findings:
            assert one.claim.endswith(".")
            assert one.cost.endswith(".")
            assert one.advice.endswith(".")


def test_a_log_without_a_kl_has_nothing_to_judge():
    found = kb.judge_log(kb.StepLog.of({"loss": [1.0, 2.0]}))
    assert found.series == ()
    assert found.findings == ()


@pytest.mark.parametrize("value", [1e308, -1e308, np.inf, -np.inf, np.nan, 0.0, 5e-324])
def test_extreme_values_are_judged_without_a_warning(value):
    values = np.full(40, 0.01)
    values[10:30] = value
    log = kb.StepLog.of({"kl": values, "b/kl": values[::-1].copy(), "kl_coef": values})
    kb.judge_log(log, tokens=1000)
    kb.judge_log(kb.StepLog.of({"kl": np.full(40, value)}), tokens=1000)


def test_an_honest_kl_per_sequence_is_not_accused_by_one_sequence_a_step():
    """Means of 8 sequences whose log-ratio is normal, as near as the start of training is."""
    for seed in range(200):
        rng = np.random.default_rng([8, seed])
        kl = np.cumsum(np.abs(rng.normal(0, 0.02, 60)))
        values = kl + np.sqrt(2 * kl / 8) * rng.standard_normal(60)
        found = kb.judge_log(kb.StepLog.of({"objective/kl": values}), framework="trl")
        assert not found.diagnosis.accused
