from __future__ import annotations

import numpy as np
import pytest

from kullback.audit.calling import Caller
from kullback.audit.enumerating import CREDITS, calls, whole_calls
from kullback.audit.roles import parameters
from kullback.audit.scenes import APART, sequence, staged, together
from kullback.audit.targets import expected, scored
from kullback.question import Question

TRIAL = together([sequence(staged(APART.name, ends=True), row) for row in (0, 1)])


def caller(fn, library="numpy"):
    return Caller(fn, parameters(fn, None), library, TRIAL)


def difference(current, reference):
    return current - reference


@pytest.mark.parametrize("ends", [False, True])
def test_every_sequence_is_called_once(ends):
    found = calls(caller(difference), "stale", ends=ends)
    world = staged("stale", ends=ends)
    own = np.where(world.tree.alive, world.by_token("current") - world.by_token("reference"), 0.0)
    assert np.array_equal(found.values, own)
    assert np.array_equal(found.totals, own.sum(axis=1))
    assert not np.any(found.derivatives)


def test_totals_of_scalars_and_of_sequences_are_one():
    per_token = calls(caller(difference), "on-policy", ends=True)
    for fn in (lambda current, reference: (current - reference).sum(),
               lambda current, reference: (current - reference).sum(-1)):  # fmt: skip
        found = calls(caller(fn), "on-policy", ends=True)
        assert found.values.ndim == 1
        assert np.allclose(found.totals, per_token.totals)
    question = Question("current", "reference", level="sequence_sum")
    mean = per_token.world.mean(per_token.totals, by="current")
    assert mean == pytest.approx(per_token.world.exact(question))


def test_derivatives_by_log_probs_and_by_logits_are_one():
    torch = pytest.importorskip("torch")
    direct = caller(lambda current, reference: (current - reference) ** 2 / 2, "torch")

    def gathered(logits, reference, tokens):
        chosen = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        return torch.square(chosen - reference) / 2

    found = [calls(one, "stale", ends=True) for one in (direct, caller(gathered, "torch"))]
    assert np.allclose(found[0].derivatives, found[1].derivatives, atol=1e-15)
    assert found[0].flows == {"current", "reference"}
    assert found[1].flows == {"current_logits", "reference"}


def test_as_a_reward_the_values_are_costs_beside_the_log_probs():
    found = calls(caller(difference), "on-policy", ends=True)
    to_go, full, _ = (
        expected(found.world, found.as_reward(credit), by="current") for credit in CREDITS
    )
    assert np.allclose(to_go, full, atol=1e-15)
    at_once = found.as_reward("immediate")
    assert np.array_equal(at_once, scored(found.world, found.values))


def test_a_cost_per_sequence_is_paid_with_its_last_token():
    found = calls(
        caller(lambda current, reference: (current - reference).sum(-1)), "stale", ends=True
    )
    per_token = calls(caller(difference), "stale", ends=True)
    assert np.allclose(found.as_reward("full_return"), per_token.as_reward("full_return"))
    assert np.allclose(found.as_reward("reward_to_go"), found.as_reward("full_return"))


def test_one_number_per_sequence_may_keep_its_axis():
    kept = caller(lambda current, reference: (current - reference).sum(-1, keepdims=True))
    flat = caller(lambda current, reference: (current - reference).sum(-1))
    one, two = (calls(each, "stale", ends=True) for each in (kept, flat))
    assert np.array_equal(one.totals, two.totals)


def test_a_whole_draw_has_the_mean_of_what_adds():
    torch = pytest.importorskip("torch")

    def k2(current, reference, mask):
        return ((current - reference) ** 2 / 2 * mask).sum() / mask.sum()

    made = caller(k2, "torch")
    for scenario in ("on-policy", "stale"):
        found = whole_calls(made, scenario, ends=True)
        world = staged(scenario, ends=True, drawn=True)
        x = torch.tensor(world.by_token("current") - world.by_token("reference"))
        own = scored(world, x.numpy()) / world.mean(world.lengths, by=world.sampler)
        assert np.allclose(
            expected(world, found.derivatives, by=world.sampler),
            expected(world, own, by=world.sampler),
            atol=1e-15,
        )


def test_a_whole_draw_of_values_per_token_and_per_sequence():
    for fn in (
        difference,
        lambda current, reference, mask: (difference(current, reference) * mask).sum(-1),
    ):
        found = whole_calls(caller(fn), "stale", ends=True)
        world = staged("stale", ends=True, drawn=True)
        x = np.where(world.tree.alive, world.by_token("current") - world.by_token("reference"), 0)
        assert np.allclose(found.totals, x.sum(axis=1))
