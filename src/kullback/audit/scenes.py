"""What a function is called with: the sequences of two small languages, and who sampled them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.formulas.categorical import log_softmax
from kullback.worlds import Tabular, three_tokens
from kullback.worlds.tables import Table

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences as a training step would have them.

    Args:
        log_probs: By role, log-probs of all tokens at each position, [sequences, tokens, alphabet].
        tokens: The sampled tokens, [sequences, tokens].
        mask: The positions that are no padding, [sequences, tokens].
    """

    log_probs: Mapping[str, Array]
    tokens: NDArray[np.int64]
    mask: NDArray[np.bool_]

    def given(self, key: str) -> NDArray[Any]:
        """The array for a key of ``roles.GIVEN``; logits are not normalized, as a model's are."""
        if key in ("mask", "tokens"):
            return getattr(self, key)
        role, _, logits = key.partition("_")
        table = self.log_probs[role]
        if logits:
            shift = 0.25 * (1 + np.arange(table.shape[1]))[:, None]
            return np.where(np.isfinite(table), table + shift, table)
        return np.take_along_axis(table, self.tokens[..., None], axis=-1)[..., 0]


@dataclass(frozen=True)
class Scenario:
    """Who sampled, and which policies are copies of which.

    Args:
        name: What it is called.
        sampler: The role that sampled.
        same: By role, the table of the world that it has in place of its own.
        words: Who sampled, in words.
    """

    name: str
    sampler: str
    same: Mapping[str, str]
    words: str


# In the last the policies are four, whoever sampled: there a form can be told from every other.
APART = Scenario("apart", "rollout", {}, "all policies apart")
SCENARIOS = {
    one.name: one
    for one in (
        Scenario(
            "on-policy",
            "current",
            {"old": "current", "rollout": "current"},
            "the current policy",
        ),
        Scenario("stale", "old", {"rollout": "old"}, "an older policy"),
        Scenario(
            "engine",
            "rollout",
            {"old": "current"},
            "another engine (old being current)",
        ),
    )
}


@cache
def language(*, ends: bool) -> Tabular:
    """The world of three tokens with a fourth policy, the rollout engine's: near the old one."""
    world = three_tokens(ends=ends)
    old = world.log_probs["old"]
    context, token = np.arange(len(old))[:, None], np.arange(old.shape[1])
    rollout = log_softmax(old + ((context * 3 + token * 5) % 7 - 3) / 20)
    return replace(world, log_probs={**world.log_probs, "rollout": rollout})


@cache
def staged(scenario: str, *, ends: bool, drawn: bool = False) -> Tabular:
    """The world of a scenario: its sampler samples, and copies are copies.

    Args:
        scenario: A name of ``SCENARIOS``, or that of ``APART``.
        ends: Whether a token can end a sequence.
        drawn: Whether the sampler's probabilities are halves and quarters, so that a batch can
            hold every sequence as often as it is drawn (``whole_draw``).
    """
    world, one = language(ends=ends), SCENARIOS.get(scenario, APART)
    own = dict(world.log_probs)
    if drawn:
        place = np.arange(len(own["current"]))[:, None]
        own[one.sampler] = np.log(np.where(np.arange(3) == place % 3, 0.5, 0.25))
    tables = {role: own[one.same.get(role, role)] for role in own}
    return replace(world, log_probs=tables, sampler=one.sampler)


def whole_draw(world: Tabular) -> tuple[Batch, NDArray[np.int64]]:
    """A batch that holds every sequence as often as it is drawn, and the row of each in the tree.

    Whatever a batch does with its mean or its size, here it does with the true ones.
    """
    times = world.probability(world.sampler) * 4**world.max_length
    rows = np.repeat(np.arange(len(times)), np.rint(times).astype(int))
    return together([sequence(world, int(row)) for row in rows]), rows


def sequence(world: Tabular, row: int) -> Batch:
    """One sequence of a world, without padding."""
    length = world.lengths[row]
    context = world.tree.context[row, :length]
    return Batch(
        {role: table[context][None] for role, table in world.log_probs.items()},
        world.tree.tokens[row, :length][None],
        np.ones((1, length), dtype=np.bool_),
    )


def single(log_probs: Mapping[str, float]) -> Batch:
    """One token, which each role gives this log-prob; the rest of the mass lies on two others.

    Example:
        >>> one = single({"current": -1.0, "reference": -3.0})
        >>> one.given("current").tolist(), one.log_probs["current"].shape
        ([[-1.0]], (1, 1, 3))
    """
    return Batch(
        {role: _spread(value)[None, None] for role, value in log_probs.items()},
        np.zeros((1, 1), dtype=np.int64),
        np.ones((1, 1), dtype=np.bool_),
    )


def _spread(log_prob: float) -> Table:
    others = np.log(-np.expm1(log_prob)) if log_prob < 0 else -np.inf
    return np.array([log_prob, others + np.log(2 / 3), others + np.log(1 / 3)])


def together(batches: Sequence[Batch], *, padding: float = -1.5) -> Batch:
    """Several sequences in one batch, padded on the right to the longest.

    Args:
        batches: The sequences, each a batch of one.
        padding: What log-probs hold where there is no token: this for ``current``, and less or
            more for the other roles.
    """
    width = max(one.mask.shape[1] for one in batches)

    def wide(values: NDArray[Any], fill: Any) -> NDArray[Any]:
        short = width - values.shape[1]
        return np.concatenate(
            [values, np.broadcast_to(fill, (1, short, *values.shape[2:]))], axis=1
        )

    roles = batches[0].log_probs
    scale = {role: 1.0 + 0.3 * place for place, role in enumerate(roles)}
    return Batch(
        {
            role: np.concatenate(
                [wide(one.log_probs[role], padding * scale[role]) for one in batches]
            )
            for role in roles
        },
        np.concatenate([wide(one.tokens, 0) for one in batches]),
        np.concatenate([wide(one.mask, False) for one in batches]),
    )
