"""Exact gradients by the current logits: of divergences, whole or token by token, and others."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from kullback.audit.scenes import Array, staged
from kullback.worlds import Tabular

WHOLE = "whole"  # of the sequence policies: the prefixes move with the policy
TOKEN = "token"  # the sum of the tokens' gradients, where their prefixes are held fixed
SHORTNESS = "E[1 / length]"
MIXED = "mixed"  # of a difference: the first side whole, the second token by token


class Target(NamedTuple):
    """A quantity, and which part of its gradient.

    ``prefixes`` is the role whose prefixes are held fixed, where they are.
    """

    of: str
    part: str
    prefixes: str | None = None

    def __str__(self) -> str:
        held = f"token by token with the prefixes of {self.prefixes} held fixed"
        if self.part == MIXED:
            return f"{self.of}, the latter {held}"
        return self.of + (f", {held}" if self.prefixes else "")


@cache
def targets(scenario: str, *, ends: bool, drawn: bool = False) -> dict[Target, Array]:
    """The gradients in a scenario, [contexts, alphabet] each, those named first that are simplest.

    Policies that are copies of the current one have none.
    """
    world = staged(scenario, ends=ends, drawn=drawn)
    current = world.log_probs["current"]
    others = [
        role
        for role in ("reference", "old", "rollout")
        if world.log_probs[role] is not current and not _is_copy(world, role)
    ]
    prefixes = ["current", *([world.sampler] if world.sampler != "current" else [])]
    found: dict[Target, Array] = {}
    for other in others:
        found |= _of_pair(world, other, prefixes)
    for other in others:
        found |= _beyond(world, other)
    found[Target("the entropy of current", WHOLE)] = _whole(world, -world.by_token("current"))
    for role in prefixes:
        log_ratio = _token(world, role, current, np.zeros_like(current))
        found[Target("the entropy of current", TOKEN, role)] = -log_ratio
    return found


def _is_copy(world: Tabular, role: str) -> bool:
    """Whether the rollout engine is the old policy."""
    return role == "rollout" and world.log_probs["old"] is world.log_probs["rollout"]


def _of_pair(world: Tabular, other: str, prefixes: list[str]) -> dict[Target, Array]:
    current, table = world.log_probs["current"], world.log_probs[other]
    ahead, back = f"KL(current||{other})", f"KL({other}||current)"
    log_ratio = world.by_token("current") - world.by_token(other)
    moved = np.exp(current) - np.exp(table)
    found = {
        Target(ahead, WHOLE): _whole(world, log_ratio),
        Target(back, WHOLE): _at_prefixes(world, other, moved),
    }
    for role in prefixes:
        found[Target(ahead, TOKEN, role)] = _token(world, role, current, table)
        if role != other:  # with the other's own prefixes that is the whole of it
            found[Target(back, TOKEN, role)] = _at_prefixes(world, role, moved)
    for part, role in ((WHOLE, None), *((TOKEN, role) for role in prefixes)):
        turned = found.get(Target(back, part, role), found[Target(back, WHOLE)])
        found[Target(f"{ahead} - {back}", part, role)] = found[Target(ahead, part, role)] - turned
    found[Target(f"{ahead} - {back}", MIXED, "current")] = (
        found[Target(ahead, WHOLE)] - found[Target(back, TOKEN, "current")]
    )
    return found


def _beyond(world: Tabular, other: str) -> dict[Target, Array]:
    """What is no divergence between policies, or one per token of a random length.

    The gradient of the KL per token is on the scale of a sum, that is, times the mean length.
    """
    log_ratio = world.by_token("current") - world.by_token(other)
    total = log_ratio.sum(axis=1, keepdims=True)
    k2 = f"E[(log current/{other})^2] / 2"
    found = {
        Target(f"{k2} of the sequence", WHOLE): _whole(world, total**2 / 2, extra=total),
        Target(f"{k2} of each token", WHOLE): _whole(world, log_ratio**2 / 2, extra=log_ratio),
    }
    lengths = world.lengths[:, None].astype(float)
    if world.eos is not None:
        mean, kl = world.mean(world.lengths, by="current"), world.mean(total[:, 0], by="current")
        longer = _whole(world, np.where(world.tree.alive, 1.0, 0.0))
        whole = _whole(world, log_ratio)
        name = f"KL(current||{other})"
        found[Target(f"{name} per token (E sum / E length)", WHOLE)] = whole - kl / mean * longer
        found[Target(f"{name} per token (E of sum / length)", WHOLE)] = _whole(
            world, log_ratio / lengths, extra=1 / lengths
        )
        # What k1 leaves where each sequence is divided by its length.
        found[Target(SHORTNESS, WHOLE)] = _whole(world, 0.0 * log_ratio, extra=1 / lengths)
    return found


def _whole(world: Tabular, cost: Array, extra: Array | float = 0.0) -> Array:
    """The gradient of the mean, over current's sequences, of what their tokens cost in sum.

    Args:
        world: The world.
        cost: The cost of each token of each sequence.
        extra: Its derivative by the token's log-prob, where its mean is not 0 given the prefix.
    """
    return expected(world, scored(world, cost.sum(axis=1, keepdims=True) + extra), by="current")


def _token(world: Tabular, prefixes: str, log_p: Array, log_q: Array) -> Array:
    """With frozen prefixes, the gradient of sum p log(p/q) by the logits of p."""
    p, log_ratio = np.exp(log_p), log_p - log_q
    mean = (p * log_ratio).sum(axis=-1, keepdims=True)
    return _at_prefixes(world, prefixes, p * (log_ratio - mean))


def _at_prefixes(world: Tabular, role: str, by_context: Array) -> Array:
    visits = expected(world, np.where(world.tree.alive, 1.0, 0.0)[..., None], by=role)
    return visits * by_context


def scored(world: Tabular, coefficient: Array) -> Array:
    """Coefficients of each token's log-prob, as derivatives by the logits at its position."""
    _, tokens, context, alive = world.tree
    probs = np.exp(world.log_probs["current"])[context]
    chosen = tokens[..., None] == np.arange(probs.shape[-1])
    return np.where(alive, coefficient, 0.0)[..., None] * (chosen - probs)


def expected(world: Tabular, derivatives: Array, *, by: str) -> Array:
    """The mean over the sequences that a role samples, gathered by context.

    Args:
        world: The world.
        derivatives: By the logits at each position, [sequences, tokens, alphabet].
        by: The role that samples.

    Returns:
        [contexts, alphabet].
    """
    weighted = world.probability(by)[:, None, None] * derivatives
    total = np.zeros((len(world.tree.contexts), derivatives.shape[-1]))
    alive = world.tree.alive
    np.add.at(total, world.tree.context[alive], weighted[alive])
    return total
