from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.diagnosis.copied import diagnose_copies
from kullback.diagnosis.diagnose import diagnose
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, Mixture

WORLD = cast(Mixture, CLEAN_WORLDS["training_loop"](16))


def copied(source: str, target: str) -> Columns:
    columns = WORLD.sample(np.random.default_rng(0))
    log_probs = {**columns.log_probs, target: columns.log_probs[source]}
    return replace(columns, log_probs=log_probs, entropy={}, top_k={}, exact={}, labels={})


@pytest.mark.parametrize(("source", "target"), [("rollout", "old"), ("current", "reference")])
def test_two_columns_that_are_one_are_told_and_nobody_is_accused(source, target):
    summary = summarize([copied(source, target)])
    (finding,) = diagnose_copies(summary).findings
    assert (finding.code, finding.severity) == ("precision-floor", "note")
    assert f"The log-probs of {target} and {source} are equal" in finding.claim
    assert finding.questions
    assert all(source in question and target in question for question in finding.questions)
    assert not diagnose(summary).accused


def test_the_first_step_is_no_copy():
    columns = copied("current", "reference")
    first = replace(columns, labels={"step": np.zeros(len(columns.lengths), dtype=np.int64)})
    assert not diagnose_copies(summarize([first])).findings


def test_what_only_a_few_tokens_or_a_uniform_policy_share_is_not_spoken_of():
    assert not diagnose_copies(summarize([copied("rollout", "old").take(slice(1))])).findings
    uniform = np.full((20, 30), -np.log(4))
    assert not diagnose_copies(summarize([pack({"p": uniform, "q": uniform})])).findings
    assert not diagnose_copies(summarize([WORLD.sample(np.random.default_rng(0))])).findings
