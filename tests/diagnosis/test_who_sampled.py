from __future__ import annotations

import math
import zlib
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import SENTINEL, pack
from kullback.diagnosis.who_sampled import who_sampled
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture
from kullback.worlds.faults import drawn_from

LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](64))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def verdicts(columns) -> dict[str, str]:
    return {one.role: one.verdict for one in who_sampled(summarize([columns])).candidates}


@pytest.mark.parametrize("role", LOOP.roles)
def test_whoever_samples_is_never_excluded_and_who_is_far_away_is(role):
    """The log says rollout in all cases, and no entropy is logged."""
    drawn = drawn_from(LOOP, rng(), LOOP.log_probs[role])
    told = verdicts(replace(drawn, entropy={}))
    assert told[role] == "cannot-tell"
    far = {"rollout": "reference", "old": "reference", "current": "reference"}
    assert told[far.get(role, "rollout")] == "cannot-have-sampled"


def test_an_honest_sampler_is_excluded_in_one_report_of_a_hundred_at_most():
    """At a true rate of 1 % more than six of 160 come in one of a thousand runs."""
    wrong = []
    for name, build in CLEAN_WORLDS.items():
        world = build(16)
        for seed in range(10):
            columns = world.sample(rng(zlib.crc32(name.encode()) + seed))
            wrong += [(name, seed)] * (verdicts(columns)[world.sampler] == "cannot-have-sampled")
    assert len(wrong) <= 6, wrong


def test_the_price_is_that_of_the_mean_of_the_products():
    log_p = np.log(np.full(20, 0.5))
    batch = pack({"old": [log_p], "current": [log_p + 0.5], "reference": [log_p - 0.5]})
    old, current, reference = who_sampled(summarize([batch])).candidates
    rounded = 20 * 4e-5  # what float32 kernels may have added
    assert old.log_p == pytest.approx(-(10 - math.log(2)) + rounded, abs=1e-6)
    assert (old.against, old.likelier) == ("current", pytest.approx(10))
    assert (current.log_p, current.against) == (0.0, "")
    assert current.likelier == pytest.approx(-10)
    expected = math.log((math.exp(20) + math.exp(10)) / 2) - rounded
    assert reference.log_p == pytest.approx(-expected, abs=1e-6)


def test_no_probability_at_all_is_certain():
    batch = pack({"old": [[-1.0, -0.5]], "current": [[-1.0, -np.inf]]})
    _, current = who_sampled(summarize([batch])).candidates
    assert (current.verdict, current.log_p) == ("cannot-have-sampled", -math.inf)


@pytest.mark.parametrize("gap", [np.nan, SENTINEL])
def test_a_column_with_gaps_is_compared_with_none(gap):
    batch = pack({"old": [[-9.0] * 50], "current": [[-0.1] * 49 + [gap]]})
    old, current = who_sampled(summarize([batch])).candidates
    assert (old.verdict, current.verdict) == ("cannot-tell", "cannot-tell")
    assert "not whole" in old.reason


@pytest.mark.parametrize("fault", ["shifted-by-one", "probabilities"])
def test_a_faulty_column_excludes_nobody_else(fault):
    world = cast(Mixture, CLEAN_WORLDS["smooth"](64))
    assert verdicts(FAULTS[fault].inject(world, rng()))["rollout"] == "fits"


def test_a_sampler_that_the_report_accuses_cannot_have_sampled():
    world = cast(Mixture, CLEAN_WORLDS["smooth"](64))
    one = who_sampled(summarize([FAULTS["top-p"].inject(world, rng())])).candidates[0]
    assert (one.role, one.said, one.verdict) == ("rollout", True, "cannot-have-sampled")


def test_a_mean_is_a_kl_if_its_first_role_sampled_and_else_the_difference_of_two():
    summary = summarize([LOOP.sample(rng())])
    told = {(one.p, one.q): one for one in who_sampled(summary).answers}
    assert told["rollout", "current"].is_kl_of == "KL(rollout||current)"
    ours = told["current", "reference"]
    assert ours.is_kl_of == ""
    assert ours.instead == "KL(current||reference) ~ rollout"
    parts = told["rollout", "reference"].mean - told["rollout", "current"].mean
    assert ours.mean == pytest.approx(parts, abs=1e-12)
    exact = LOOP.exact(Question("current", "reference", "rollout"))
    assert abs(ours.value - exact) < 0.02
    assert "KL(rollout||reference) − KL(rollout||current)" in str(ours)


def test_a_mean_over_tokens_of_an_excluded_sampler_is_no_kl():
    (told,) = who_sampled(summarize([pack({"old": [[-3.0] * 9], "current": [[-2.0] * 9]})])).answers
    assert (told.is_kl_of, told.excluded) == ("", True)
    assert "is no KL: old cannot have sampled" in str(told)
