from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.processed import diagnose_processed
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture
from kullback.worlds.faults import with_policy
from kullback.worlds.tables import kept_top_k, kept_top_p, tempered

LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](16))
ROLLOUT = LOOP.log_probs["rollout"]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("top_k", [0, 20])
@pytest.mark.parametrize("kept", [kept_top_p(ROLLOUT, 0.9), kept_top_k(ROLLOUT, 20)])
def test_processed_against_raw_is_told_with_the_kept_mass(kept, top_k):
    columns = with_policy(LOOP, "rollout", kept).sample(rng(), top_k=top_k)
    (finding,) = [f for f in diagnose(summarize([columns])).findings if f.accuses]
    assert finding.code == "sampler-truncated"
    assert "rollout's log-probs are of after a top-k, top-p or min-p (processed)" in finding.claim
    inside = np.where(np.isfinite(kept), np.exp(LOOP.log_probs["old"]), 0.0).sum(axis=1)
    # Kinds of prompts and their lengths are drawn, so only about the mean over contexts.
    assert finding.numbers["kept_mass"]["old"] == pytest.approx(inside.mean(), abs=0.05)
    assert finding.numbers["k1_mean"] > 0


def test_one_finding_names_every_copy():
    columns = with_policy(LOOP, "rollout", kept_top_p(ROLLOUT, 0.9)).sample(rng())
    (finding,) = diagnose_processed(summarize([columns])).findings
    assert set(finding.numbers["kept_mass"]) == {"old", "current"}
    weighed = "KL(current||reference) ~ rollout"  # its weights leave the same mass out
    assert finding.questions == ("KL(rollout||old)", "KL(rollout||current)", weighed)


def test_copies_that_differ_otherwise_are_not_accused():
    worlds = [LOOP, with_policy(LOOP, "rollout", tempered(ROLLOUT, 0.8))]
    samples = [world.sample(rng()) for world in worlds]
    samples += [FAULTS[name].inject(LOOP, rng()) for name in ("dropout", "stale", "in-sample")]
    for columns in samples:
        found = diagnose_processed(summarize([columns]))
        assert not found.findings
        assert {check.status for check in found.checks} == {"passed"}


@pytest.mark.parametrize("name", ["holes_in_policy", "deep_holes_in_policy"])
def test_holes_of_a_policy_against_its_reference_are_none_of_it(name):
    world = CLEAN_WORLDS[name](16)
    assert not diagnose_processed(summarize([world.sample(rng())])).checks


def test_few_tokens_tell_nothing():
    columns = with_policy(LOOP, "rollout", kept_top_p(ROLLOUT, 0.9)).sample(rng())
    assert not diagnose_processed(summarize([columns.take(slice(3))])).checks


def moved(old):
    columns = LOOP.sample(rng())
    log_probs = {**columns.log_probs, "old": old(columns.log_probs["rollout"])}
    return diagnose_processed(summarize([replace(columns, log_probs=log_probs)]))


def test_one_constant_and_densities_are_no_kept_mass():
    assert not moved(lambda rollout: rollout - 3.0).findings
    assert not moved(lambda rollout: 1.1 * rollout).findings
    varied = np.random.default_rng(1).uniform(0.7, 1.0, len(LOOP.sample(rng())))
    assert moved(lambda rollout: rollout + np.log(varied)).findings
    columns = LOOP.sample(rng())
    dense = {role: values + 2.0 for role, values in columns.log_probs.items()}
    dense["old"] = dense["rollout"] - 0.1 * (2.0 - dense["rollout"])
    dense = replace(columns, log_probs=dense, tokens=None, text=None, token_bytes=None)
    dense = replace(dense, top_k={}, entropy={}, exact={})
    assert not diagnose_processed(summarize([dense])).findings


def test_a_tail_is_no_kept_mass():
    # A floor, and a policy that has moved far away, give single tokens far less.
    assert not moved(lambda rollout: np.where(rollout < -3, rollout - 3.0, rollout)).findings
    jumps = np.random.default_rng(1).random(len(LOOP.sample(rng()))) < 0.3
    assert not moved(lambda rollout: rollout - np.where(jumps, 6.0, 0.01)).findings


def test_one_prompt_has_no_error_and_accuses_nobody():
    columns = with_policy(LOOP, "rollout", kept_top_p(ROLLOUT, 0.9)).sample(rng())
    one = replace(columns, clusters=np.zeros_like(columns.clusters))
    assert not diagnose_processed(summarize([one])).findings


def test_log_probs_behind_another_prompt_are_no_kept_mass():
    """Lower at the start of sequences, by many nats at some tokens, and never higher."""
    columns = LOOP.sample(rng())
    depth = 4 * np.exp(-columns.position_of_token / 20) * rng(1).gamma(1.0, 1.0, len(columns))
    log_probs = {**columns.log_probs, "old": columns.log_probs["rollout"] - depth}
    assert not diagnose_processed(summarize([replace(columns, log_probs=log_probs)])).findings
