from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import pack
from kullback.diagnosis.sampler import diagnose_sampler, sampler_check
from kullback.diagnosis.sampler_tests import sampler_tests
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

WORLD = cast(Mixture, CLEAN_WORLDS["smooth"](64))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def open_checks(found):
    """What cannot be told of the sampler; no words are said again in a world."""
    checks = [check for check in found.checks if check.status == "not-possible"]
    return [check for check in checks if check.code == "sampler-mismatch"]


@pytest.mark.parametrize("name", ["truncated-reference", "shifted-by-one", "probabilities"])
def test_a_column_fault_is_not_laid_to_the_sampler(name):
    summary = summarize([FAULTS[name].inject(WORLD, rng())])
    assert {test.kind for test in sampler_tests(summary)} == {"entropy", "openings", "recall"}
    assert not diagnose_sampler(summary).accused


@pytest.mark.parametrize("fault", ["temperature", "top-k", "top-p"])
def test_a_sharper_sampler_is_told_from_its_entropy_and_the_way_is_named(fault):
    headless = replace(FAULTS[fault].inject(WORLD, rng()), top_k={})
    (finding,) = diagnose_sampler(summarize([headless])).findings
    assert finding.code == "sampler-mismatch"
    assert "lower temperature or a truncation" in finding.claim
    assert finding.numbers["z"] < -5
    assert finding.questions == ("KL(rollout||reference)",)


def test_a_flatter_sampler_is_told_too():
    draw = WORLD.draw(rng(), WORLD.log_probs["rollout"] * 0.8)  # unnormalized on purpose: T = 1.25
    (finding,) = diagnose_sampler(summarize([WORLD.logged(draw)])).findings
    assert "a flatter policy" in finding.claim
    assert finding.numbers["z"] > 5


def test_the_head_test_finds_a_truncation_without_entropy():
    honest = WORLD.sample(rng(), top_k=20)
    summary = summarize([replace(honest, entropy={})])
    (heads,) = [test for test in sampler_tests(summary) if test.kind == "heads"]
    assert abs(heads.z) < 4
    assert heads.count == len(honest)
    from kullback.worlds.tables import kept_top_k

    cut = WORLD.draw(rng(), kept_top_k(WORLD.log_probs["rollout"], 20))
    logged = replace(WORLD.logged(cut, top_k=20), entropy={})
    (heads,) = [test for test in sampler_tests(summarize([logged])) if test.kind == "heads"]
    assert heads.z > 5
    (finding,) = diagnose_sampler(summarize([logged])).findings
    assert finding.code == "sampler-truncated"  # which says more


def test_another_sampler_is_told_by_the_bound():
    (finding,) = diagnose_sampler(
        summarize([FAULTS["wrong-sampler"].inject(WORLD, rng())])
    ).findings
    assert finding.code == "negative-beyond-chance"
    assert finding.numbers["k1_mean"] < 0
    assert "Had rollout sampled them" in finding.claim


def test_the_cost_names_the_exact_kl_where_it_is_known():
    drawn = WORLD.logged(WORLD.draw(rng(), WORLD.log_probs["reference"]), exact=True)
    (finding,) = diagnose_sampler(summarize([drawn])).findings
    truth = float(drawn.exact["KL(rollout||reference)"].mean())
    assert f"The exact KL(rollout||reference) at these prefixes is {truth:.4g}" in finding.cost


def test_without_entropy_or_heads_the_sampler_is_not_verifiable_and_the_remedy_is_named():
    bare = replace(WORLD.sample(rng()), entropy={})
    summary = summarize([bare])
    assert sampler_check(summary, Question("rollout", "reference")).verdict == "not-verifiable"
    (open_check,) = open_checks(diagnose_sampler(summary))
    assert "log entropy.rollout" in open_check.reason


def test_too_few_prefixes_with_entropy_are_not_tested():
    """499 prefixes above the floor, whatever stands at the others."""
    few = WORLD.sample(rng())
    entropy = np.where(np.arange(len(few)) < 499, 1.0, 0.1)
    summary = summarize([replace(few, entropy={"rollout": entropy})])
    assert not [test for test in sampler_tests(summary) if test.kind == "entropy"]
    (open_check,) = open_checks(diagnose_sampler(summary))
    assert "only 499 prefixes" in open_check.reason


def test_what_cannot_be_told_has_its_true_reason():
    def reason(columns):
        return open_checks(diagnose_sampler(summarize([columns])))[0].reason

    honest = WORLD.sample(rng())
    one_prompt = replace(honest, clusters=np.zeros_like(honest.clusters))
    assert "of fewer than 4 effective prompts" in reason(one_prompt)
    unscored = FAULTS["prompt"].inject(WORLD, rng())
    assert "its column holds something else, or nothing in places" in reason(unscored)


def test_an_honest_sampler_is_consistent_and_its_missing_mass_has_an_error():
    check = sampler_check(summarize([WORLD.sample(rng())]), Question("rollout", "reference"))
    assert check.verdict == "consistent"
    assert check.z is not None
    assert abs(check.z) < 5
    assert check.entropy_z is not None
    assert abs(check.entropy_z) < 4


def test_equal_policies_have_no_z():
    summary = summarize([pack({"old": [[-1.0], [-2.0]], "current": [[-1.0], [-2.0]]})])
    check = sampler_check(summary, Question("old", "current"))
    assert (check.missing_mass, check.standard_error, check.z) == (0.0, 0.0, None)


def test_values_of_minus_log_p_are_suspected_where_no_token_says_otherwise():
    log_p = np.full((100, 1), 1.1)
    (finding,) = diagnose_sampler(summarize([pack({"p": log_p, "q": log_p + 0.1})])).findings
    assert finding.advice == "No value is below 0: if they are −log p, turn their sign."


def test_a_head_that_holds_nearly_everything_is_not_tested():
    """Peaked policies with top-20: hardly a miss is expected, and none proves nothing."""
    world = CLEAN_WORLDS["very_peaked_policy"](16)
    assert isinstance(world, Mixture)
    for seed in range(2):
        sample = world.sample(np.random.default_rng(seed), top_k=600)
        summary = summarize([replace(sample, entropy={})])
        assert not diagnose_sampler(summary).accused


def test_the_entropy_test_is_not_made_on_what_the_engine_chose_to_log():
    sample = WORLD.sample(rng())
    values = np.where(sample.log_probs["rollout"] < -6, np.nan, sample.log_probs["rollout"])
    gaps = replace(sample, log_probs={**sample.log_probs, "rollout": values})
    found = diagnose_sampler(summarize([gaps]))
    assert not found.accused
    (open_check,) = open_checks(found)
    assert "log-probs are missing, perhaps because of what was drawn" in open_check.reason


@pytest.mark.parametrize("kind", [np.float32, "bfloat16"])
def test_rounding_does_not_accuse_a_uniform_policy(kind):
    """Without spread the error is nearly 0, and any rounding is many of it."""
    log_p = np.full((200, 50), -np.log(500.0), dtype=np.float32)
    entropy = np.full(10_000, np.log(500.0), dtype=np.float32)
    log_p += np.random.default_rng(0).normal(0, 1e-6, log_p.shape).astype(np.float32)
    if kind == "bfloat16":
        entropy = ((entropy.view(np.uint32) + 0x8000) & np.uint32(0xFFFF0000)).view(np.float32)
    columns = replace(pack({"p": log_p, "q": log_p}), entropy={"p": entropy})
    assert not diagnose_sampler(summarize([columns])).accused


def test_one_column_of_several_that_is_no_policy_is_named_beside_the_sampler():
    columns = cast(Mixture, CLEAN_WORLDS["training_loop"](64)).sample(rng())
    reference = np.log(np.exp(columns.log_probs["reference"]) + 0.01)  # an ε inside the log
    summary = summarize([replace(columns, log_probs={**columns.log_probs, "reference": reference})])
    (finding,) = diagnose_sampler(summary).findings
    assert "Or the column of reference holds something else" in finding.claim
    assert "old and current show nothing of this." in finding.claim


def test_a_sampler_that_all_policies_speak_against_has_no_such_way_out():
    columns = FAULTS["wrong-sampler"].inject(cast(Mixture, CLEAN_WORLDS["light_drift"](64)), rng())
    findings = diagnose_sampler(summarize([columns])).findings
    assert findings
    assert not any("holds something else" in finding.claim for finding in findings)
