from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kullback as kb
from kullback.columns import Columns
from kullback.diagnosis.rescored import diagnose_rescored, noises
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture
from kullback.worlds.faults import replaced, rounded_to_bf16

CODE = "stochastic-forward"


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def real() -> Columns:
    """Without the four sequences in which the engine lost an id."""
    (columns,) = kb.read(kb.demo_path())
    return columns.take(np.setdiff1d(np.arange(len(columns.lengths)), (7, 49, 67, 80)))


def with_dropout(columns: Columns, role: str = "old", size: float = 0.15) -> Columns:
    """Noise as of the logits: a token that is certain keeps its log-prob."""
    own = columns.log_probs[role].astype(np.float64)
    noise = size * rng().standard_normal(len(columns))
    return replaced(columns, role, np.minimum(own + (1 - np.exp(own)) * noise, -1e-7))


def statuses(columns: Columns) -> dict[str, str]:
    return {check.subject: check.status for check in diagnose_rescored(summarize([columns])).checks}


def test_real_log_probs_of_one_prefix_are_equal_to_the_last_bit() -> None:
    assert set(statuses(real()).values()) == {"passed"}


def test_dropout_is_seen_where_completions_of_a_prompt_begin_alike() -> None:
    columns = with_dropout(real())
    found = statuses(columns)
    assert found.pop("old") == "failed"
    assert set(found.values()) == {"passed"}
    (finding,) = diagnose_rescored(summarize([columns])).findings
    assert (finding.code, finding.certainty, finding.accuses) == (CODE, "certain", False)
    assert finding.questions == ("KL(rollout||old)",)
    assert 0.03 < finding.numbers["noise"]["old"] < 0.15
    assert finding.numbers["differing"] > 20


def test_an_equal_role_vouches_for_the_prefix_however_large_the_noise_of_another() -> None:
    columns = with_dropout(real(), size=1.0)
    assert statuses(columns)["old"] == "failed"
    # Without a step the weights may have moved by as much.
    assert statuses(replace(columns, labels={}))["old"] == "not-possible"


def test_rows_scored_twice_are_evidence_whatever_they_begin_with() -> None:
    world = CLEAN_WORLDS["smooth"](64)
    assert isinstance(world, Mixture)
    columns = world.sample(rng())
    rows = len(columns.lengths)
    twice = columns.take(np.r_[0:rows, 0 : rows // 4])
    noisy = FAULTS["dropout"].inject(world, rng())
    assert diagnose_rescored(summarize([twice])).findings == ()
    twice = replaced(
        twice, "reference", twice.log_probs["rollout"] + 0.05 * rng().standard_normal(len(twice))
    )
    assert {f.severity for f in diagnose_rescored(summarize([twice])).findings} == {"warning"}
    alone = replace(twice, cluster_kind="sequence")
    (finding,) = diagnose_rescored(summarize([alone])).findings
    assert finding.numbers["noise"] == {"reference": pytest.approx(0.05, rel=0.03)}
    # Once scored, the same noise is a small drift, and nobody can tell.
    assert set(statuses(noisy).values()) == {"not-possible"}


def test_without_a_step_weights_may_have_changed_unless_it_is_the_reference() -> None:
    columns = replace(with_dropout(real()), labels={})
    (finding,) = diagnose_rescored(summarize([columns])).findings
    assert (finding.certainty, "no step is logged" in finding.claim) == ("likely", True)
    (finding,) = diagnose_rescored(summarize([with_dropout(real(), "current")])).findings
    assert (finding.certainty, "every minibatch" in finding.claim) == ("likely", True)
    columns = replace(with_dropout(real(), "reference"), labels={})
    (finding,) = diagnose_rescored(summarize([columns])).findings
    assert finding.certainty == "certain"


def test_rounding_and_kernels_are_no_noise() -> None:
    columns = real()
    own = columns.log_probs["old"].astype(np.float64)
    for size, change in ((1e-5, lambda x: x), (1e-4, rounded_to_bf16)):
        noisy = replaced(columns, "old", change(own + size * rng().standard_normal(len(columns))))
        assert statuses(noisy)["old"] == "passed"


def test_prompts_that_only_share_an_id_are_no_noise() -> None:
    """Two prompts under one id: their completions begin alike, and every role scores them anew."""
    columns = real()
    first = columns.clusters[0]
    coarse = replace(columns, clusters=np.full_like(columns.clusters, first))
    found = diagnose_rescored(summarize([coarse]))
    assert found.findings == ()
    assert {check.status for check in found.checks} == {"not-possible"}


@pytest.mark.parametrize("name", CLEAN_WORLDS)
def test_clean_worlds_are_not_told_of(name: str) -> None:
    for seed in range(3):
        assert noises(summarize([CLEAN_WORLDS[name](64).sample(rng(seed))])) == {}


@pytest.mark.parametrize(
    "fault", ["temperature", "top-k", "top-p", "wrong-sampler", "shifted-by-one"]
)
def test_other_faults_are_not_taken_for_noise(fault: str) -> None:
    world = CLEAN_WORLDS["training_loop"](64)
    assert isinstance(world, Mixture)
    columns = replace(FAULTS[fault].inject(world, rng()), top_k={})  # heads say nothing of it
    assert noises(summarize([columns])) == {}
