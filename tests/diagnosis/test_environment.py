from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import SENTINEL, Columns
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.environment import FEWEST_STRETCHES, diagnose_environment
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, Mixture
from kullback.worlds.faults import environment_counted

WORLD = cast(Mixture, CLEAN_WORLDS["training_loop"](16))
CODE = "mask-covers-environment"


def clean(seed: int = 0) -> Columns:
    return replace(WORLD.sample(np.random.default_rng(seed)), entropy={})


def faulty(value: float = 0.0) -> Columns:
    columns = environment_counted(clean(), np.random.default_rng(1), "rollout")
    engine = columns.log_probs["rollout"]
    written = np.where(engine == 0, value, engine)
    return replace(columns, log_probs={**columns.log_probs, "rollout": written})


def turns(columns: Columns) -> np.ndarray:
    return (
        environment_counted(clean(), np.random.default_rng(1), "rollout").log_probs["rollout"] == 0
    )


@pytest.mark.parametrize("value", [0.0, np.nan, SENTINEL, -1.0])
def test_a_tools_tokens_are_told_whatever_the_engine_wrote_there(value):
    columns = faulty(value)
    (finding,) = [f for f in diagnose(summarize([columns])).findings if f.accuses]
    assert finding.code == CODE
    assert finding.numbers["tokens"] == turns(columns).sum()
    assert "rollout did not sample them" in finding.claim


def test_the_cost_is_the_estimate_without_them():
    columns = faulty()
    (finding,) = diagnose_environment(summarize([columns])).findings
    k1 = columns.log_probs["rollout"] - columns.log_probs["old"]
    rest = k1[~turns(columns)].mean()
    assert f"is {k1.mean():.4g} nats per token by k1, without them {rest:.4g}." in finding.cost


def test_tokens_that_the_mask_leaves_out_are_counted_in_the_check():
    columns = faulty()
    masked = replace(columns, mask=~turns(columns))
    diagnosis = diagnose_environment(summarize([masked]))
    assert not diagnosis.findings
    assert f"{turns(columns).sum()} in all" in diagnosis.checks[0].reason


def beside_the_reference(columns: Columns) -> Columns:
    """Without the trainer's copies of the sampler."""
    kept = ("rollout", "reference")
    return replace(columns, log_probs={role: columns.log_probs[role] for role in kept})


def test_a_copy_of_the_weights_tells_without_ids():
    for columns in (faulty(), replace(faulty(), tokens=None)):
        (finding,) = diagnose_environment(summarize([columns])).findings
        assert finding.code == CODE


def test_a_format_that_is_certain_is_no_other_turn():
    columns = beside_the_reference(faulty())
    position = columns.position_of_token
    same = np.where(turns(columns), 7 + position, np.asarray(columns.tokens))
    diagnosis = diagnose_environment(summarize([replace(columns, tokens=same)]))
    assert not diagnosis.findings
    assert diagnosis.checks[0].status == "not-possible"


def test_without_ids_it_cannot_be_told():
    diagnosis = diagnose_environment(
        summarize([replace(beside_the_reference(faulty()), tokens=None)])
    )
    assert not diagnosis.findings
    assert diagnosis.checks[0].status == "not-possible"


def test_a_policy_that_is_often_certain_is_not_accused():
    columns = clean()
    for share in (0.02, 0.3, 0.9):
        sure = np.random.default_rng(2).random(len(columns)) < share
        engine = np.where(sure, 0.0, columns.log_probs["rollout"])
        changed = replace(columns, log_probs={**columns.log_probs, "rollout": engine})
        assert not diagnose_environment(summarize([changed])).findings


def test_few_stretches_prove_nothing():
    columns = faulty()
    few = columns.take(slice(0, FEWEST_STRETCHES))
    assert not diagnose_environment(summarize([few])).findings


def test_stretches_that_no_role_scored_are_one_finding_and_shrink_every_mean():
    columns, inside = clean(), turns(clean())
    blank = {role: np.where(inside, 0.0, v) for role, v in columns.log_probs.items()}
    counted = faulty()
    columns = replace(counted, log_probs=blank, top_k={}, exact={})
    (finding,) = diagnose_environment(summarize([columns])).findings
    assert finding.code == CODE
    assert finding.numbers["tokens"] == inside.sum()
    assert "for every role" in finding.claim
    assert len(finding.questions) == len(summarize([columns]).questions)
