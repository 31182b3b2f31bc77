from __future__ import annotations

import math
from typing import cast

import numpy as np
import pytest

from kullback.columns import pack
from kullback.estimation.policies import policy_questions, policy_table
from kullback.estimation.summary import summarize
from kullback.experiments.occupancy.directions import FAR_END, of_size
from kullback.experiments.occupancy.measure import actions, old
from kullback.experiments.occupancy.rollouts import draw
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS
from kullback.worlds.tabular import Tabular

LANGUAGE = cast(Tabular, CLEAN_WORLDS["three_token_language"](2000))


def table(world, seed=0):
    batch = world.sample(np.random.default_rng(seed))
    asked = policy_questions(batch.log_probs, world.sampler)
    return {(one.p, one.q): one for one in policy_table(summarize([batch], questions=asked))}


def test_the_pairs_go_along_the_chain_and_begin_with_who_sampled():
    asked = policy_questions(["reference", "teacher", "current", "old", "rollout"], "rollout")
    pairs = list(dict.fromkeys((one.p, one.q) for one in asked))
    assert pairs == [
        ("rollout", "old"),
        ("rollout", "current"),
        ("rollout", "reference"),
        ("old", "current"),
        ("old", "reference"),
        ("current", "reference"),
    ]
    assert [one.weight for one in asked if (one.p, one.q) == pairs[-1]] == ["token", "cumulative"]


def test_without_an_engine_the_trainers_copy_leads_the_chain():
    asked = policy_questions(["old", "current", "reference"], "old")
    assert [str(one) for one in asked][:2] == ["KL(old||current)", "KL(old||reference)"]
    asked = policy_questions(["engine", "current"], "engine")
    assert [str(one) for one in asked] == ["KL(engine||current)"]


def test_each_correction_is_of_its_own_kl():
    """A language in which prefixes matter: exact by enumeration, 16,000 sequences."""
    one = table(LANGUAGE)["current", "reference"]
    assert one.token
    assert one.own
    for found, prefixes in ((one.token, "rollout"), (one.own, "current")):
        exact = LANGUAGE.exact(Question("current", "reference", "rollout", prefixes))
        assert abs(found.mean - exact) < 5 * found.standard_error
        assert found.standard_error < 0.1 * exact
    plain = sum(
        sign * LANGUAGE.exact(Question("rollout", role))
        for sign, role in ((1, "reference"), (-1, "current"))
    )
    assert one.plain == pytest.approx(plain, abs=0.01)
    assert abs(one.plain - one.own.mean) > 5 * one.own.standard_error


def test_who_sampled_needs_no_weight():
    one = table(LANGUAGE)["rollout", "current"]
    assert (one.right, one.token) == ("none", None)
    assert math.isnan(one.weights_left)
    assert one.own
    assert one.own.question == Question("rollout", "current")


def test_the_weights_decide_which_correction_is_right():
    one = table(LANGUAGE)["current", "reference"]
    assert one.right == ("cumulative" if one.weights_left >= 0.5 else "token")
    loop = table(CLEAN_WORLDS["training_loop"](32))
    assert loop["old", "reference"].right == "cumulative"
    assert loop["current", "reference"].right == "token"
    assert "KL(rollout||reference) − KL(rollout||current)" in loop["current", "reference"].bias


def test_cumulative_weights_that_saw_too_little_are_not_read():
    """Two thirds of the tokens are left, and a fifth of what p does was not sampled."""
    cells, chosen = draw(0)
    new, before = (
        np.log(actions(right))[cells, chosen] for right in (of_size(FAR_END, 0.005).right, old())
    )
    batch = pack({"rollout": before, "current": new, "reference": before})
    asked = policy_questions(batch.log_probs, "rollout")
    (*_, last) = policy_table(summarize([batch], questions=asked))
    assert last.weights_left > 0.5
    assert last.right == "token"


def test_of_a_summary_that_asked_less_there_is_less():
    batch = CLEAN_WORLDS["training_loop"](4).sample(np.random.default_rng(0))
    (*_, last) = policy_table(summarize([batch]))
    assert (last.p, last.q, last.own, last.right) == ("current", "reference", None, "token")


def test_questions_at_other_levels_do_not_count():
    batch = CLEAN_WORLDS["training_loop"](4).sample(np.random.default_rng(0))
    assert policy_table(summarize([batch], questions=["KL(rollout||current) per sequence"])) == ()
