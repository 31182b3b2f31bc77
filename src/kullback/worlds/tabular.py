"""Policies over a few tokens, small enough to enumerate: every sequence, every answer exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.clusters import cluster_keys
from kullback.columns import Columns
from kullback.formulas import categorical
from kullback.question import Question
from kullback.worlds.tables import Table


class Tree(NamedTuple):
    """All sequences of a small language and the contexts that they run through.

    ``contexts`` are the prefixes that a token can follow, depth first. Of the arrays, all
    [sequences, max_length], ``tokens`` and ``context`` (an index into ``contexts``) are −1 and
    ``alive`` is false past the end of a sequence.
    """

    contexts: list[tuple[int, ...]]
    tokens: NDArray[np.int64]
    context: NDArray[np.int64]
    alive: NDArray[np.bool_]


def tree(alphabet: int, max_length: int, eos: int | None = None) -> Tree:
    """Enumerate the sequences of at most ``max_length`` tokens; ``eos`` ends one early.

    Example:
        >>> tree(2, 2, eos=1).contexts, tree(2, 2, eos=1).tokens.tolist()
        ([(), (0,)], [[0, 0], [0, 1], [1, -1]])
    """
    contexts: list[tuple[int, ...]] = []
    sequences: list[tuple[int, ...]] = []

    def grow(prefix: tuple[int, ...]) -> None:
        if len(prefix) == max_length or (prefix and prefix[-1] == eos):
            sequences.append(prefix)
            return
        contexts.append(prefix)
        for token in range(alphabet):
            grow((*prefix, token))

    grow(())
    place = {prefix: index for index, prefix in enumerate(contexts)}
    tokens = np.full((len(sequences), max_length), -1)
    context = np.full((len(sequences), max_length), -1)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = sequence
        context[row, : len(sequence)] = [place[sequence[:t]] for t in range(len(sequence))]
    return Tree(contexts, tokens, context, tokens >= 0)


@dataclass(frozen=True, eq=False)
class Tabular:
    """A small language, its policies by role, and who samples.

    Whatever a sequence is worth (an estimate, an advantage, a gradient) goes as an array over
    ``tree`` into ``mean`` and ``variance``, exact under any sampler.

    Args:
        log_probs: By role, log-probs of the next token at each context of the tree,
            [contexts, alphabet], in nats; being normalized they are their own logits.
        sampler: The role that samples.
        max_length: Tokens after which a sequence is over.
        eos: The token that ends a sequence early, if any.
        sequences: How many sequences ``sample`` draws, each a cluster of its own.

    Example:
        >>> world = three_tokens(ends=True)
        >>> question = Question("current", "reference", level="sequence_sum")
        >>> round(world.exact(question), 6)
        0.460846
        >>> k1 = (world.by_token("current") - world.by_token("reference")).sum(axis=1)
        >>> round(world.mean(k1, by="current"), 6), round(world.variance(k1, by="current"), 6)
        (0.460846, 1.397247)
    """

    log_probs: Mapping[str, Table]
    sampler: str
    max_length: int
    eos: int | None = None
    sequences: int = 512

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles with a policy."""
        return tuple(self.log_probs)

    @cached_property
    def tree(self) -> Tree:
        """All sequences and contexts."""
        alphabet = self.log_probs[self.sampler].shape[-1]
        return tree(alphabet, self.max_length, self.eos)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sequence of the tree, its end included."""
        return self.tree.alive.sum(axis=1)

    @cached_property
    def entropy(self) -> dict[str, NDArray[np.float64]]:
        """Entropy at each context, by role, [contexts], in nats."""
        return {
            role: categorical.entropy(log_probs=table) for role, table in self.log_probs.items()
        }

    def kl(self, p: str, q: str) -> NDArray[np.float64]:
        """KL(p‖q) of the next token at each context, [contexts], in nats."""
        return categorical.exact(log_probs_p=self.log_probs[p], log_probs_q=self.log_probs[q])

    def by_token(self, role: str) -> NDArray[np.float64]:
        """Log-prob of each token of each sequence, [sequences, max_length]; 0 past the end."""
        _, tokens, context, alive = self.tree
        return np.where(alive, self.log_probs[role][context, tokens], 0.0)

    def by_context(self, values: ArrayLike) -> NDArray[np.float64]:
        """Values of the contexts along each sequence, [sequences, max_length]; 0 past the end."""
        return np.where(self.tree.alive, np.asarray(values)[self.tree.context], 0.0)

    def probability(self, role: str) -> NDArray[np.float64]:
        """Probability of each sequence, [sequences]."""
        return np.exp(self.by_token(role).sum(axis=1))

    def mean(self, values: ArrayLike, *, by: str) -> float:
        """The exact mean, over the sequences that a role samples, of a value of each sequence."""
        weight = self.probability(by)
        happens = weight > 0
        return float(weight[happens] @ np.asarray(values, dtype=np.float64)[happens])

    def variance(self, values: ArrayLike, *, by: str) -> float:
        """The exact variance of a value of each sequence under a role."""
        return self.mean((np.asarray(values) - self.mean(values, by=by)) ** 2, by=by)

    def exact(self, question: Question | str) -> float:
        """The answer: the KL at every context, averaged over the prefixes in question.

        token_mean = E[Σ KL_t] / E[length], sequence_sum = E[Σ KL_t] (with p's prefixes the KL
        of the sequence policies, by the chain rule), sequence_mean = E[Σ KL_t / length].
        """
        question = Question.parse(question)
        along = self.by_context(self.kl(question.p, question.q)).sum(axis=1)
        if question.level == "sequence_mean":
            return self.mean(along / self.lengths, by=question.prefixes)
        total = self.mean(along, by=question.prefixes)
        if question.level == "sequence_sum":
            return total
        return total / self.mean(self.lengths, by=question.prefixes)

    def sample(self, rng: np.random.Generator, *, exact: bool = False) -> Columns:
        """Draw sequences; the columns hold every role's log-probs, entropies and token ids.

        Args:
            rng: The source of chance.
            exact: Whether to log the exact KL at each prefix too, for every pair of roles.
        """
        rows = rng.choice(len(self.lengths), size=self.sequences, p=self.probability(self.sampler))
        alive = self.tree.alive[rows]
        context, tokens = self.tree.context[rows][alive], self.tree.tokens[rows][alive]
        pairs = permutations(self.roles, 2) if exact else ()
        return Columns(
            lengths=self.lengths[rows],
            mask=np.ones(len(tokens), dtype=np.bool_),
            log_probs={role: table[context, tokens] for role, table in self.log_probs.items()},
            clusters=cluster_keys(np.arange(len(rows))),
            entropy={role: values[context] for role, values in self.entropy.items()},
            exact={str(Question(p, q)): self.kl(p, q)[context] for p, q in pairs},
            tokens=tokens,
        )


def three_tokens(*, ends: bool) -> Tabular:
    """Three tokens, three steps: 27 sequences or, if token 2 ends one, 15.

    ``current`` samples, ``old`` is a stale copy of it, ``reference`` is far away. The logits are
    decimals with one digit, so that anybody can check the numbers to any precision.
    """
    eos = 2 if ends else None
    contexts = tree(3, 3, eos).contexts
    code = np.array([sum((t + 1) * 4**i for i, t in enumerate(c)) for c in contexts])[:, None]
    token = np.arange(3)

    def logits(scale: int) -> NDArray[np.float64]:
        return ((code * scale + token * 13 + code * token * 3) % 21 - 10) / 10

    current, stale = logits(7), logits(7) + ((code * 5 + token * 3) % 7 - 3) / 10
    tables = {"current": current, "reference": logits(11), "old": stale}
    log_probs = {role: categorical.log_softmax(table) for role, table in tables.items()}
    return Tabular(log_probs, sampler="current", max_length=3, eos=eos)
