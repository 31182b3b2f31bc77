from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.diagnosis.clamped import clamped_at
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.soundness import unfit
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, Mixture

LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](64))
PAIR = Question("rollout", "reference")
WEIGHED = Question("current", "reference", "rollout")


def clamped(low: float, high: float):
    columns = LOOP.sample(np.random.default_rng(0))
    rollout, reference = (columns.log_probs[role] for role in ("rollout", "reference"))
    log_r = np.clip(reference - rollout, low, high)
    return replace(columns, log_probs={**columns.log_probs, "reference": rollout + log_r})


@pytest.mark.parametrize("low", [-0.2, -0.05])
def test_one_end_cut_off_is_a_clamp_and_speaks_of_no_sampler(low):
    summary = summarize([clamped(low, np.inf)])
    (end,) = clamped_at(summary, PAIR)
    assert end.value == pytest.approx(low, rel=1e-5)
    for question in (PAIR, WEIGHED):
        assert unfit(summary, question) == "its log-ratios were clamped"
    assert not diagnose(summary).accused


def test_both_ends_are_known_without_a_round_limit():
    assert len(clamped_at(summarize([clamped(-0.0731, 0.0731)]), PAIR)) == 2


def test_nothing_is_clamped_in_clean_worlds():
    for build in CLEAN_WORLDS.values():
        summary = summarize([build(16).sample(np.random.default_rng(0))])
        assert not any(clamped_at(summary, question) for question in summary.questions)
