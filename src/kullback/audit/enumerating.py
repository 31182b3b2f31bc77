"""Calls a function on every sequence of a world: what it gives, and what it does in training."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kullback.audit.calling import Caller
from kullback.audit.differentiating import Outcome
from kullback.audit.forms import credited
from kullback.audit.scenes import Array, Batch, sequence, staged, whole_draw
from kullback.audit.targets import scored
from kullback.worlds import Tabular

CREDITS = ("reward_to_go", "full_return", "immediate")


class Calls(NamedTuple):
    """A function's answers on all sequences of a scenario's world.

    Args:
        world: The world.
        values: Per token, [sequences, tokens], 0 past an end; or per sequence, [sequences].
        derivatives: By the current logits at each position, [sequences, tokens, alphabet].
        flows: The keys of what a gradient flows to.
    """

    world: Tabular
    values: Array
    derivatives: Array
    flows: frozenset[str]

    @property
    def totals(self) -> Array:
        """The values, summed over each sequence."""
        return self.values.sum(axis=1) if self.values.ndim == 2 else self.values

    def as_reward(self, credit: str) -> Array:
        """The derivatives that the values have as costs, held constant, beside the log-probs."""
        costs = self.values
        if costs.ndim == 1:  # one cost, paid with the last token
            last = np.arange(self.world.max_length) == self.world.lengths[:, None] - 1
            costs = costs[:, None] * last
        return scored(self.world, credited(costs, credit))


def calls(caller: Caller, scenario: str, *, ends: bool) -> Calls:
    """Call it on every sequence, each a batch of one."""
    world = staged(scenario, ends=ends)
    batches = [sequence(world, row) for row in range(len(world.lengths))]
    outcomes = [caller(one) for one in batches]
    derivatives = np.concatenate(
        [_by_logits(*both, world) for both in zip(outcomes, batches, strict=True)]
    )
    flows = frozenset(key for one in outcomes for key in one.gradient)
    if any(one.values.ndim < 2 for one in outcomes):
        totals = np.array([one.values.sum() for one in outcomes])
        return Calls(world, totals, derivatives, flows)
    values = np.zeros(world.tree.tokens.shape)
    for row, one in enumerate(outcomes):
        values[row, : one.values.shape[1]] = one.values[0]
    return Calls(world, values, derivatives, flows)


def whole_calls(caller: Caller, scenario: str, *, ends: bool) -> Calls:
    """Call it once, on a batch that holds every sequence as often as it is drawn.

    A sequence's values are as returned, and a scalar is each one's; the mean of the derivatives is
    that of a scalar, or of the mean over sequences of what is returned for each.
    """
    world = staged(scenario, ends=ends, drawn=True)
    batch, rows = whole_draw(world)
    outcome = caller(batch)
    derivatives = np.zeros((len(world.lengths), *batch.log_probs["current"].shape[1:]))
    np.add.at(derivatives, rows, _by_logits(outcome, batch, world))
    derivatives /= world.probability(world.sampler)[:, None, None]
    if outcome.values.ndim == 0:
        values = np.full(len(world.lengths), float(outcome.values))
    else:
        derivatives /= len(rows)
        values = np.zeros((len(world.lengths), *outcome.values.shape[1:]))
        values[rows] = (
            np.where(batch.mask, outcome.values, 0) if values.ndim > 1 else outcome.values
        )
    return Calls(world, values, derivatives, frozenset(outcome.gradient))


def _by_logits(outcome: Outcome, batch: Batch, world: Tabular) -> Array:
    """Its gradient by the current logits at each position, up to the longest of the world."""
    table = batch.log_probs["current"]
    chosen = batch.tokens[..., None] == np.arange(table.shape[-1])
    found = np.zeros(table.shape)
    if "current" in outcome.gradient:
        found = found + outcome.gradient["current"][..., None] * (chosen - np.exp(table))
    if "current_logits" in outcome.gradient:
        found = found + outcome.gradient["current_logits"]
    found = np.where(batch.mask[..., None], found, 0.0)
    return np.pad(found, ((0, 0), (0, world.max_length - table.shape[1]), (0, 0)))
