from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.displaced import diagnose_displaced
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](16))


def moved(role: str, by: int):
    columns = LOOP.sample(np.random.default_rng(0))
    values = columns.log_probs[role].copy()
    for start, end in zip(columns.starts, columns.ends, strict=True):
        part, gap = values[start:end].copy(), np.zeros(min(abs(by), end - start))
        values[start:end] = (
            np.concatenate([gap, part])[: end - start]
            if by > 0
            else np.concatenate([part, gap])[len(gap) :]
        )
    return replace(columns, log_probs={**columns.log_probs, role: values})


@pytest.mark.parametrize("by", [2, 3, -2])
@pytest.mark.parametrize("role", ["rollout", "reference"])
def test_a_column_that_was_moved_and_filled_up_is_misaligned(role, by):
    (finding,) = [one for one in diagnose(summarize([moved(role, by)])).findings if one.accuses]
    assert finding.code == "misaligned"
    assert f"with log-probs of {role} that are 0" in finding.claim
    assert f"about {abs(by)} tokens {'late' if by > 0 else 'early'}" in finding.claim


def test_a_shift_by_one_and_a_counted_prompt_keep_their_names():
    assert not diagnose_displaced(summarize([moved("reference", 1)])).findings
    for name in ("prompt", "environment"):
        columns = FAULTS[name].inject(LOOP, np.random.default_rng(0))
        assert not diagnose_displaced(summarize([columns])).findings


def test_clean_worlds_have_none():
    for build in CLEAN_WORLDS.values():
        summary = summarize([build(16).sample(np.random.default_rng(0))])
        assert not diagnose_displaced(summary).checks
