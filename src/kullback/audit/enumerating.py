"""Calls a function on every sequence of a world: what it gives, and what it does in training."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kullback.audit.calling import Caller
from kullback.audit.forms import credited
from kullback.audit.scenes import Array, sequence, staged
from kullback.audit.targets import scored
from kullback.worlds import Tabular

CREDITS = ("reward_to_go", "full_return", "immediate")


class Calls(NamedTuple):
    """A function's answers on all sequences of a scenario's world, one sequence in each call.

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
    """Call it on every sequence."""
    world = staged(scenario, ends=ends)
    shape = world.tree.tokens.shape
    values, totals = np.zeros(shape), np.zeros(shape[0])
    coefficient = np.zeros(shape)
    by_logits = np.zeros((*shape, world.log_probs["current"].shape[-1]))
    flows: set[str] = set()
    per_token = True
    for row in range(shape[0]):
        outcome = caller(sequence(world, row))
        length = world.lengths[row]
        totals[row] = outcome.values.sum()
        if outcome.values.ndim == 2:
            values[row, :length] = outcome.values[0]
        else:
            per_token = False
        flows |= outcome.gradient.keys()
        if "current" in outcome.gradient:
            coefficient[row, :length] = outcome.gradient["current"][0]
        if "current_logits" in outcome.gradient:
            by_logits[row, :length] = outcome.gradient["current_logits"][0]
    derivatives = scored(world, coefficient) + by_logits
    return Calls(world, values if per_token else totals, derivatives, frozenset(flows))
