from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns, TopK, pack
from kullback.diagnosis.diagnose import diagnose
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture
from kullback.worlds.faults import rounded_to_bf16, with_policy
from kullback.worlds.tables import drifted, kept_top_k, kept_top_p, tempered, zipf

WORLD = cast(Mixture, CLEAN_WORLDS["smooth"](16))
OWN, OTHER = WORLD.log_probs["rollout"], WORLD.log_probs["reference"]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def drew(table, top_k: int = 20, world: Mixture = WORLD) -> Columns:
    return world.logged(world.draw(rng(), table), top_k=top_k)


def accused(columns: Columns) -> list:
    return [finding for finding in diagnose(summarize([columns])).findings if finding.accuses]


def min_p(table, share: float):
    kept = table >= table.max(axis=1, keepdims=True) + np.log(share)
    mass = np.where(kept, np.exp(table), 0.0).sum(axis=1, keepdims=True)
    return np.where(kept, table - np.log(mass), -np.inf)


@pytest.mark.parametrize("temperature", [0.6, 0.8, 0.9])
@pytest.mark.parametrize("entropy", [True, False])
def test_a_temperature_is_named_with_its_error_and_nothing_besides(temperature, entropy):
    columns = drew(tempered(OWN, temperature))
    (finding,) = accused(columns if entropy else replace(columns, entropy={}))
    assert finding.code == "temperature-mismatch"
    assert finding.questions == ("KL(rollout||reference)",)
    apart = abs(finding.numbers["temperature"] - temperature)
    assert apart < 5 * finding.numbers["standard_error"] < 0.1


def test_draws_near_to_greedy_have_a_bound_for_a_temperature():
    (finding,) = accused(drew(tempered(OWN, 0.1)))
    assert finding.code == "temperature-mismatch"
    assert "temperature 0.12 or less" in finding.claim
    assert finding.numbers["standard_error"] is None
    assert json.dumps(finding.numbers, allow_nan=False)


@pytest.mark.parametrize(
    ("table", "top_k", "said"),
    [
        (kept_top_k(OWN, 20), 50, "top-k 20"),
        (kept_top_k(OWN, 20), 20, "top-k 20"),
        (kept_top_k(OWN, 37), 50, "top-k 37"),
        (kept_top_p(OWN, 0.9), 50, "top-p 0.9"),
        (min_p(OWN, 0.05), 50, "min-p 0.05"),
    ],
)
def test_a_cut_is_named_with_its_parameter_and_nothing_besides(table, top_k, said):
    (finding,) = accused(drew(table, top_k))
    assert finding.code == "sampler-truncated"
    assert f"never drew beyond a {said} of its own log-probs" in finding.claim
    assert json.dumps(finding.numbers, allow_nan=False)


def test_a_cut_between_two_of_the_grid_is_bracketed():
    (finding,) = accused(drew(kept_top_p(OWN, 0.93), 100))
    assert "a top-p between 0.93 and 0.95" in finding.claim


def test_greedy_draws_are_called_that():
    (finding,) = accused(drew(kept_top_k(OWN, 1)))
    assert finding.code == "sampler-truncated"
    assert "always drew its likeliest token (greedy" in finding.claim


NARROW = zipf(rng(), alphabet=400)
SMALL = Mixture({"rollout": NARROW, "reference": drifted(rng(1), NARROW, 0.3)}, prompts=16)


@pytest.mark.parametrize(
    ("cut", "how", "top_k", "world"), [(kept_top_k, 20, 50, WORLD), (kept_top_p, 0.9, 399, SMALL)]
)
def test_the_corrected_value_is_the_kl_of_what_it_drew_from(cut, how, top_k, world):
    both = world.log_probs
    table = cut(both["rollout"], how)
    (finding,) = accused(drew(table, top_k, world))
    kept = np.isfinite(table)
    log_r = np.where(kept, table, 0.0) - both["reference"]
    truth = np.where(kept, np.exp(table) * log_r, 0.0).sum(axis=1)
    mass = {r: np.where(kept, np.exp(t), 0.0).sum(axis=1).mean() for r, t in both.items()}
    # Over drawn contexts; the exact mean is over all 256.
    assert finding.numbers["k1_corrected"] == pytest.approx(truth.mean(), abs=0.02)
    assert finding.numbers["kept_mass"] == pytest.approx(mass, abs=0.02)
    assert f"= {finding.numbers['k1_corrected']:.4g} nats per token" in finding.cost


@pytest.mark.parametrize(
    ("p", "q", "counts", "right", "raw"),
    [
        # 16 draws in the proportions of what a top-k of 3 keeps, and 67 of what a top-k of 2 keeps.
        ((0.4, 0.25, 0.15, 0.1, 0.06, 0.04), (0.3, 0.3, 0.1, 0.05, 0.17, 0.08), (8, 5, 3),
         0.3860338088122702, 0.16289025749804646),
        ((0.34, 0.33, 0.2, 0.13), (0.45, 0.45, 0.06, 0.04), (34, 33),
         0.10547190317521357, -0.29500566342191176),
    ],
)  # fmt: skip
def test_the_correction_is_exact_over_the_population(p, q, counts, right, raw):
    flat = np.tile(np.repeat(np.arange(len(counts)), counts), 20)
    sides = {"rollout": np.log(p), "reference": np.log(q)}
    order = {role: np.argsort(-table, kind="stable") for role, table in sides.items()}
    columns = replace(
        pack(
            {role: table[flat] for role, table in sides.items()},
            lengths=1,
            clusters=range(len(flat)),
        ),
        tokens=flat,
        top_k={
            role: TopK(*(np.tile(one, (len(flat), 1)) for one in (order[role], table[order[role]])))
            for role, table in sides.items()
        },
    )
    (finding,) = accused(columns)
    assert finding.code == "sampler-truncated"
    assert finding.numbers["drawn"] == len(counts)
    assert finding.numbers["k1_raw"] == pytest.approx(raw, rel=1e-9)
    assert finding.numbers["k1_corrected"] == pytest.approx(right, rel=1e-9)
    kept = {"rollout": sum(p[: len(counts)]), "reference": sum(q[: len(counts)])}
    assert finding.numbers["kept_mass"] == pytest.approx(kept, rel=1e-9)


def test_where_the_heads_are_too_short_the_corrected_value_is_not_identifiable():
    (finding,) = accused(drew(kept_top_p(OWN, 0.9), 50))
    assert "k1_corrected" not in finding.numbers
    assert "not identifiable: the heads reach to the cut at" in finding.cost


@pytest.mark.parametrize("top_k", [20, 50])
def test_a_temperature_under_a_top_k_is_told_besides(top_k):
    (finding,) = accused(drew(kept_top_k(tempered(OWN, 0.7), 20), top_k))
    assert finding.code == "sampler-truncated"
    (told,) = re.findall(r"Within its heads they fall as at temperature ([\d.]+) ±", finding.claim)
    assert float(told) == pytest.approx(0.7, abs=0.03)
    assert "k1_corrected" not in finding.numbers
    assert "a temperature or another cut was left out besides" in finding.cost


def test_two_cuts_are_both_told_and_not_taken_for_a_temperature():
    both = np.where(np.isfinite(kept_top_p(OWN, 0.8)), kept_top_k(OWN, 20), -np.inf)
    both -= np.log(np.exp(both).sum(axis=1, keepdims=True))
    (finding,) = accused(drew(both, 50))
    assert finding.code == "sampler-truncated"
    assert "temperature" not in finding.claim
    assert {"top-k 20", "top-p 0.8"} <= set(re.findall(r"top-[kp] [\d.]+\d", finding.claim))


def test_another_policy_is_no_temperature():
    """The reference is the policy at 1.4: both explain the draws, and the role is the better."""
    flat = cast(Mixture, CLEAN_WORLDS["flat_reference"](16))
    for world in (WORLD, flat):
        found = accused(drew(world.log_probs["reference"], world=world))
        assert {finding.code for finding in found} <= {"negative-beyond-chance", "sampler-mismatch"}
        assert found


@pytest.mark.parametrize("table", [tempered(OWN, 1.3), drifted(rng(3), OWN, 1.5)])
def test_flatter_draws_may_be_of_other_weights_and_no_cause_is_named(table):
    columns = drew(table)
    logged = columns.log_probs["rollout"]
    blind = replace(columns, log_probs={"rollout": logged, "reference": logged - 0.01})
    blind = replace(blind, top_k={"rollout": columns.top_k["rollout"]})
    (finding,) = accused(blind)
    assert finding.code == "sampler-mismatch"
    assert finding.numbers["temperature"] == pytest.approx(1.3, abs=0.15)
    assert "Other weights than those that were logged look alike" in finding.claim


def test_bfloat16_heads_accuse_no_honest_sampler_and_hide_no_cut():
    def rounded(columns: Columns) -> Columns:
        heads = {
            role: TopK(head.ids, rounded_to_bf16(head.log_probs))
            for role, head in columns.top_k.items()
        }
        return replace(columns, top_k=heads)

    assert not accused(rounded(drew(OWN)))
    (finding,) = accused(rounded(drew(kept_top_k(OWN, 20), 50)))
    assert (finding.code, finding.numbers["rule"]) == ("sampler-truncated", "top-k")


def test_a_copy_at_the_same_temperature_does_not_take_the_blame():
    world = cast(Mixture, CLEAN_WORLDS["training_loop"](16))
    world = with_policy(world, "old", tempered(world.log_probs["rollout"], 0.8))
    columns = drew(tempered(world.log_probs["rollout"], 0.8), world=world)
    assert [finding.code for finding in accused(columns)] == ["temperature-mismatch"]


def test_checks_carry_the_code_that_was_found():
    columns = FAULTS["top-k"].inject(WORLD, rng())
    found = diagnose(summarize([columns], questions=[Question("rollout", "reference")]))
    failed = {check.code for check in found.checks if check.status == "failed"}
    assert failed == {"sampler-truncated"}
