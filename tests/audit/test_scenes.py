from __future__ import annotations

import numpy as np
import pytest

from kullback.audit.scenes import (
    APART,
    SCENARIOS,
    language,
    sequence,
    single,
    staged,
    together,
    whole_draw,
)
from kullback.worlds import three_tokens


@pytest.mark.parametrize("ends", [False, True])
def test_the_language_is_the_world_of_three_tokens_and_an_engine(ends):
    world, known = language(ends=ends), three_tokens(ends=ends)
    for role, table in known.log_probs.items():
        assert np.array_equal(world.log_probs[role], table)
    rollout = world.log_probs["rollout"]
    assert np.allclose(np.exp(rollout).sum(axis=1), 1)
    assert 0.001 < world.kl("old", "rollout").max() < 0.1


@pytest.mark.parametrize("name", SCENARIOS)
def test_copies_are_copies_in_a_scenario(name):
    world, own = staged(name, ends=True), language(ends=True)
    assert world.sampler == SCENARIOS[name].sampler
    for role, table in world.log_probs.items():
        assert table is own.log_probs[SCENARIOS[name].same.get(role, role)]


def test_apart_all_policies_differ():
    world = staged(APART.name, ends=False)
    assert len({table.tobytes() for table in world.log_probs.values()}) == 4


def test_a_sequence_is_given_as_log_probs_logits_tokens_and_mask():
    world = staged(APART.name, ends=True)
    one = sequence(world, 14)
    assert one.given("tokens").tolist() == [[2]]
    one = sequence(world, 3)
    current, logits = one.given("current"), one.given("current_logits")
    assert current.tolist() == [world.by_token("current")[3].tolist()]
    probs = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    chosen = np.take_along_axis(probs, one.tokens[..., None], -1)[..., 0]
    assert np.allclose(np.log(chosen), current)
    assert not np.allclose(np.exp(logits).sum(axis=-1), 1)  # logits are no log-probs
    assert one.given("mask").all()


def test_a_single_token_has_the_log_probs_asked_for():
    one = single({"current": -0.5, "reference": -40.0})
    assert one.given("reference").tolist() == [[-40.0]]
    for table in one.log_probs.values():
        assert np.exp(table).sum() == pytest.approx(1)
    assert np.exp(single({"current": 0.0}).log_probs["current"]).sum() == pytest.approx(1)


def test_together_is_padded_on_the_right():
    world = staged(APART.name, ends=True)
    batch = together([sequence(world, 14), sequence(world, 3)])
    assert batch.mask.tolist() == [[True, False, False], [True, True, True]]
    assert batch.given("current")[0, 1] != batch.given("reference")[0, 1]
    other = together([sequence(world, 14), sequence(world, 3)], padding=-0.6)
    same = batch.given("current") == other.given("current")
    assert np.array_equal(same, batch.mask)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("ends", [False, True])
def test_a_whole_draw_holds_every_sequence_as_often_as_it_is_drawn(name, ends):
    world = staged(name, ends=ends, drawn=True)
    batch, rows = whole_draw(world)
    assert len(rows) == len(batch.mask) == 64
    assert np.allclose(np.bincount(rows) / 64, world.probability(world.sampler))
    assert np.array_equal(batch.mask.sum(axis=1), world.lengths[rows])
    # The other policies are as they were.
    assert world.log_probs["reference"] is language(ends=ends).log_probs["reference"]
