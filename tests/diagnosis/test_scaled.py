from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns, TopK, pack
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.scaled import diagnose_scaled, scaled_roles, spoken_factor
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, Mixture
from kullback.worlds.faults import drawn_from, with_policy
from kullback.worlds.tables import kept_top_k, tempered

LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](16))
BITS, DECIMAL = 1 / np.log(2), 1 / np.log(10)


def drawn(seed: int = 0, top_k: int = 0, world: Mixture = LOOP) -> Columns:
    return world.sample(np.random.default_rng(seed), top_k=top_k)


def times(columns: Columns, factor: float, *roles: str, heads: bool = False) -> Columns:
    scaled = {r: v * (factor if r in roles else 1) for r, v in columns.log_probs.items()}
    top_k = {
        r: TopK(head.ids, head.log_probs * (factor if r in roles and heads else 1))
        for r, head in columns.top_k.items()
    }
    return replace(columns, log_probs=scaled, top_k=top_k)


def found(columns: Columns):
    return [one for one in diagnose(summarize([columns])).findings if one.severity != "note"]


@pytest.mark.parametrize("role", ["rollout", "old", "current", "reference"])
@pytest.mark.parametrize("factor", [BITS, DECIMAL, 0.5, 1 / 0.8, 3.0])
def test_the_role_and_its_factor_are_named_and_nothing_else(role, factor):
    (finding,) = found(times(drawn(), factor, role))
    assert finding.code == "unit-or-scale"
    assert finding.claim.startswith(f"The log-probs of {role} are ")
    assert finding.numbers["factor"] == pytest.approx(factor, rel=0.05)
    assert all(role in question for question in finding.questions)


@pytest.mark.parametrize(("factor", "name"), [(BITS, "bits (log2)"), (DECIMAL, "decimal log")])
def test_a_unit_is_named_with_what_mends_it(factor, name):
    (finding,) = found(times(drawn(), factor, "old"))
    assert f"old is in {name}" in finding.claim
    assert f"multiply old by log {2 if factor > 1 else 10} = {1 / factor:.4f}" in finding.advice
    assert finding.numbers["k1_in_one_unit"] == pytest.approx(found_k1(drawn()), abs=1e-6)


def found_k1(columns: Columns) -> float:
    return float(np.mean(columns.log_probs["rollout"] - columns.log_probs["old"]))


def test_heads_in_bits_are_not_told_a_second_time():
    for heads in (False, True):
        columns = times(drawn(top_k=20), BITS, "rollout", heads=heads)
        (finding,) = [one for one in found(columns) if one.accuses]
        assert finding.code == "unit-or-scale"


def test_the_sampler_in_nats_beside_all_others_in_bits_names_these():
    (first, *_) = found(times(drawn(), BITS, "old", "current", "reference"))
    assert "old is in bits" in first.claim


def test_of_two_roles_the_unit_says_which_and_another_factor_does_not():
    columns = drawn()
    pair = {role: columns.log_probs[role] for role in ("rollout", "old")}
    two = replace(columns, log_probs=pair, entropy={}, exact={})
    (bits,) = found(times(two, BITS, "old"))
    (also,) = found(times(two, BITS, "rollout"))
    assert "So old is in bits" in bits.claim
    assert "So rollout is in bits" in also.claim
    (other,) = found(times(two, 1.7, "old"))
    assert "So old or rollout was multiplied" in other.claim


def test_where_a_drift_blurs_the_factor_a_temperature_is_named_as_well():
    (sharp,) = found(times(drawn(), BITS, "old"))
    (blurred,) = found(times(drawn(), BITS, "reference"))
    assert "temperature" not in sharp.claim
    assert "divided by a temperature of 0.7 look alike" in blurred.claim


@pytest.mark.parametrize("temperature", [0.3, 0.6, 0.8, 1.25, 2.0])
def test_a_temperature_is_no_factor(temperature):
    for role in ("rollout", "old"):
        world = with_policy(LOOP, role, tempered(LOOP.log_probs[role], temperature))
        assert not scaled_roles(summarize([drawn(world=world)]))


@pytest.mark.parametrize("temperature", [0.3, 0.6, 0.8, 1.25, 2.0])
def test_nor_is_one_that_did_not_sample(temperature):
    world = with_policy(LOOP, "rollout", tempered(LOOP.log_probs["rollout"], temperature))
    columns = drawn_from(world, np.random.default_rng(0), LOOP.log_probs["rollout"])
    assert not scaled_roles(summarize([columns]))


def test_a_role_that_has_drifted_far_vouches_for_nobody():
    world = cast(Mixture, CLEAN_WORLDS["strong_drift"](16))
    columns = drawn(world=world)
    log_probs = {**columns.log_probs, "old": columns.log_probs["rollout"] - 1e-6}
    for role in ("rollout", "old"):
        twin = replace(columns, log_probs=log_probs, entropy={}, exact={})
        assert set(scaled_roles(summarize([times(twin, BITS, role)]))) == {role}


def test_a_cut_and_a_missing_normalizer_are_none_either():
    cut = with_policy(LOOP, "rollout", kept_top_k(LOOP.log_probs["rollout"], 5))
    assert not scaled_roles(summarize([drawn(world=cut)]))
    columns = drawn()
    for offset in (0.1, 0.2, 0.5, 1.0):
        moved = {**columns.log_probs, "old": columns.log_probs["old"] - offset}
        assert not scaled_roles(summarize([replace(columns, log_probs=moved)]))


def test_nothing_is_told_of_clean_worlds():
    for build in CLEAN_WORLDS.values():
        for seed in range(3):
            columns = build(16).sample(np.random.default_rng(seed))
            assert not diagnose_scaled(summarize([columns])).findings


def test_even_draws_that_a_policy_shares_with_unseen_ones_are_no_factor():
    # Of a uniform p any q below it is on a line through 0.
    even = np.full((40, 20), np.log(0.5))
    low = np.log(np.random.default_rng(0).uniform(0.2, 0.3, even.shape))
    assert not scaled_roles(summarize([pack({"rollout": even, "old": low})]))


def test_nor_are_two_actions_beside_unseen_ones():
    first = np.random.default_rng(0).random((60, 20)) < 0.6
    p, q = (np.log(np.where(first, *pair)) for pair in ((0.6, 0.4), (0.36, 0.16)))
    assert not scaled_roles(summarize([pack({"rollout": p, "old": q})]))


def test_gaps_and_few_tokens_tell_nothing():
    columns = times(drawn(), BITS, "old")
    gap = columns.log_probs["old"].copy()
    gap[3] = np.nan
    log_probs = {**columns.log_probs, "old": gap}
    assert not scaled_roles(summarize([replace(columns, log_probs=log_probs)]))
    assert not scaled_roles(summarize([columns.take(slice(3))]))


def test_parts_add():
    columns = times(drawn(), BITS, "rollout")
    parts = [columns.take(slice(0, 30)), columns.take(slice(30, None))]
    whole, both = (diagnose_scaled(summarize(some)) for some in ([columns], parts))
    assert whole.findings[0].numbers["factor"] == pytest.approx(both.findings[0].numbers["factor"])


def test_a_ratio_to_the_entropy_is_read_as_a_unit():
    assert "or log-probs in bits (log2) beside an entropy in nats" in spoken_factor(1.44, 0.01)
    assert "or an entropy in bits (log2) beside log-probs in nats" in spoken_factor(0.70, 0.01)
    assert "log10" in spoken_factor(2.3, 0.02)
    assert spoken_factor(1.2, 0.02) == ""
    assert spoken_factor(-0.5, 0.01) == ""


@pytest.mark.parametrize("factor", [BITS, DECIMAL])
def test_the_entropy_test_of_a_dump_all_in_one_unit_says_which_it_may_be(factor):
    columns = drawn()
    columns = replace(times(columns, factor, *columns.log_probs), exact={})
    (finding,) = [one for one in found(columns) if one.accuses]
    assert finding.code == "sampler-mismatch"
    assert f"log-probs in {'bits' if factor > 1 else 'decimal'}" in finding.claim


def test_heads_in_bits_throughout_are_told_beside_the_temperature_they_look_like():
    columns = drawn(top_k=20)
    columns = replace(times(columns, BITS, *columns.log_probs, heads=True), entropy={}, exact={})
    (finding,) = [one for one in found(columns) if one.accuses]
    assert "So do draws at temperature 1, with log-probs and heads in bits" in finding.claim
