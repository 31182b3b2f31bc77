from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.audit.scenes import SCENARIOS, staged
from kullback.audit.targets import MIXED, TOKEN, WHOLE, Target, expected, scored, targets
from kullback.formulas.categorical import log_softmax
from kullback.question import Question

STEP = 1e-5


def difference(world, quantity, context, token):
    """The derivative of a quantity by one logit of the current policy."""
    found = []
    for step in (STEP, -STEP):
        logits = world.log_probs["current"].copy()
        logits[context, token] += step
        tables = {**world.log_probs, "current": log_softmax(logits)}
        found.append(quantity(replace(world, log_probs=tables)))
    return (found[0] - found[1]) / (2 * STEP)


def whole_kl(p, q):
    return lambda world: world.exact(Question(p, q, level="sequence_sum"))


def entropy(world):
    return -world.mean(world.by_token("current").sum(axis=1), by="current")


def log_ratio(world, other="reference"):
    return world.by_token("current") - world.by_token(other)


def _of_any(name):
    """Where all lengths are one, per token is no other quantity."""
    return "per token" not in name


WHOLES = {
    "KL(current||reference)": whole_kl("current", "reference"),
    "KL(reference||current)": whole_kl("reference", "current"),
    "KL(current||old)": whole_kl("current", "old"),
    "KL(old||current)": whole_kl("old", "current"),
    "the entropy of current": entropy,
    "E[(log current/reference)^2] / 2 of the sequence": lambda world: world.mean(
        log_ratio(world).sum(axis=1) ** 2 / 2, by="current"
    ),
    "E[(log current/reference)^2] / 2 of each token": lambda world: world.mean(
        (log_ratio(world) ** 2 / 2).sum(axis=1), by="current"
    ),
    "KL(current||reference) per token (E sum / E length)": lambda world: world.exact(
        Question("current", "reference")
    ),
    "KL(current||reference) per token (E of sum / length)": lambda world: world.mean(
        log_ratio(world).sum(axis=1) / world.lengths, by="current"
    ),
}


@pytest.mark.parametrize(
    ("name", "ends"), [(name, ends) for name in WHOLES for ends in (True, *[False] * _of_any(name))]
)
def test_whole_gradients_are_the_derivatives_of_the_exact_quantities(name, ends):
    world = staged("stale", ends=ends)
    table = targets("stale", ends=ends)[Target(name, WHOLE)]
    if name.endswith("(E sum / E length)"):
        table = table / world.mean(world.lengths, by="current")
    for context, token in ((0, 0), (1, 2), (4, 1), (len(table) - 1, 0)):
        expected_slope = difference(world, WHOLES[name], context, token)
        assert table[context, token] == pytest.approx(expected_slope, abs=1e-8)


@pytest.mark.parametrize("prefixes", ["current", "old"])
def test_with_prefixes_held_fixed_each_context_counts_by_how_often_it_is_visited(prefixes):
    world = staged("stale", ends=True)
    visits = expected(world, np.where(world.tree.alive, 1.0, 0.0)[..., None], by=prefixes)[:, 0]
    found = targets("stale", ends=True)
    for p, q in (("current", "reference"), ("reference", "current")):
        table = found[Target(f"KL({p}||{q})", TOKEN, prefixes)]
        for context, token in ((0, 1), (2, 0), (5, 2)):
            own = difference(
                world, lambda one, p=p, q=q, c=context: one.kl(p, q)[c], context, token
            )
            assert table[context, token] == pytest.approx(visits[context] * own, abs=1e-8)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_copy_of_the_current_policy_is_no_target(name):
    found = {target.of for target in targets(name, ends=True)}
    others = {"on-policy": {"reference"}, "stale": {"reference", "old"}}
    for other in ("reference", "old", "rollout"):
        is_there = f"KL(current||{other})" in found
        assert is_there == (other in others.get(name, {"reference", "rollout"}))


def test_k3_in_the_reward_is_a_difference_of_a_whole_and_a_part():
    world = staged("on-policy", ends=True)
    x = -log_ratio(world)
    costs = np.where(world.tree.alive, np.expm1(x) - x, 0.0).sum(axis=1, keepdims=True)
    seen = expected(world, scored(world, costs + np.zeros_like(x)), by="current")
    name = Target("KL(current||reference) - KL(reference||current)", MIXED, "current")
    assert np.allclose(seen, targets("on-policy", ends=True)[name], atol=1e-14)


def test_a_target_says_what_it_is():
    assert str(Target("KL(current||old)", TOKEN, "old")) == (
        "KL(current||old), token by token with the prefixes of old held fixed"
    )
