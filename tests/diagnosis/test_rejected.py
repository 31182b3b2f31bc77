from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.rejected import diagnose_rejected
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

CODE = "selected-on-outcome"
WORLD = cast(Mixture, CLEAN_WORLDS["training_loop"](16))
CLEAN = WORLD.sample(np.random.default_rng(0))
LOG_R = CLEAN.log_probs["current"] - CLEAN.log_probs["rollout"]


def told(mask: np.ndarray):
    return diagnose_rejected(summarize([replace(CLEAN, mask=mask)])).findings


@pytest.mark.parametrize(
    "kept",
    [np.abs(LOG_R) < 0.3, LOG_R < 0.25, LOG_R > -0.25, np.abs(np.expm1(LOG_R) - LOG_R) < 0.03],
)
def test_tokens_beyond_a_band_are_told(kept):
    (finding,) = told(kept)
    assert (finding.code, finding.numbers["by"]) == (CODE, "tokens")
    assert "current to rollout" in finding.claim


@pytest.mark.parametrize("statistic", ["sum", "mean", "largest"])
def test_sequences_beyond_a_band_are_told(statistic):
    sums = np.add.reduceat(LOG_R, CLEAN.starts)
    values = {
        "sum": np.abs(sums),
        "mean": np.abs(sums) / CLEAN.lengths,
        "largest": np.maximum.reduceat(np.abs(LOG_R), CLEAN.starts),
    }[statistic]
    kept = values < np.quantile(values, 0.9)
    (finding,) = told(np.repeat(kept, CLEAN.lengths))
    assert finding.code == CODE
    assert finding.numbers["by"] != "tokens"


def test_the_cost_is_the_estimate_with_what_was_rejected():
    kept = np.abs(LOG_R) < 0.3
    (finding,) = told(kept)
    terms = np.expm1(LOG_R) - LOG_R
    assert f"by k1 and {terms[kept].mean():.4g} by k3, with what was rejected" in finding.cost


@pytest.mark.parametrize("seed", range(10))
def test_holes_and_rows_by_chance_are_no_rejection(seed):
    rng = np.random.default_rng(seed)
    assert not told(rng.random(len(CLEAN)) < 0.9)
    assert not told(np.repeat(rng.random(len(CLEAN.lengths)) < 0.9, CLEAN.lengths))


def test_a_tools_tokens_that_the_engine_did_not_score_are_no_rejection():
    turn = np.zeros(len(CLEAN), dtype=bool)
    for start in CLEAN.starts[CLEAN.lengths > 20]:
        turn[start + 5 : start + 12] = True
    engine = np.where(turn, 0.0, CLEAN.log_probs["rollout"])
    columns = replace(CLEAN, log_probs={**CLEAN.log_probs, "rollout": engine}, mask=~turn)
    assert CODE not in {f.code for f in diagnose(summarize([columns])).findings}


def test_a_mask_cut_by_rejection_spoils_no_end():
    ends = np.isin(np.arange(len(CLEAN)), CLEAN.ends - 1)
    kept = (np.abs(LOG_R) < 0.3) & ~(ends & (np.abs(LOG_R) > 0.05))
    columns: Columns = replace(CLEAN, mask=kept)
    found = {f.code for f in diagnose(summarize([columns])).findings}
    assert CODE in found
    assert "end-not-counted" not in found


@pytest.mark.parametrize("name", ["smooth", "holes_in_policy", "training_loop"])
def test_a_selection_accuses_no_sampler(name):
    world = cast(Mixture, CLEAN_WORLDS[name](64))
    for seed in range(3):
        diagnosis = diagnose(
            summarize([FAULTS["rejected"].inject(world, np.random.default_rng(seed))])
        )
        assert CODE in {f.code for f in diagnosis.findings}
        assert not diagnosis.accused
        (check,) = [c for c in diagnosis.checks if c.code == "sampler-mismatch"]
        assert (check.status, "cut by log-ratios" in check.reason) == ("not-possible", True)
