"""Worlds like a language model's: many contexts, thousands of tokens, prompts, random lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.clusters import cluster_keys
from kullback.columns import Columns, TopK
from kullback.formulas import categorical
from kullback.question import Question
from kullback.worlds.tables import Table, head

_SPELLING = str.maketrans("0123456789", "éabcd漢efgh")


class Draw(NamedTuple):
    """What was sampled, before anybody logs it: lengths, and contexts and tokens end to end."""

    lengths: NDArray[np.int64]
    contexts: NDArray[np.int64]
    tokens: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Each token meets a context, drawn at random among those of its prompt's kind.

    The next-token distributions of all roles stand in tables, so every mean, direction and
    variance is a finite sum. A prompt draws its kind when sampled: prompts differ as kinds do.

    Args:
        log_probs: By role, log-probs of the next token, [contexts, alphabet], in nats.
        sampler: The role that samples.
        prompts: Prompts of one sample, each a cluster.
        sequences_per_prompt: Sequences of each prompt.
        max_length: Tokens after which a sequence is cut.
        ends: Whether token 0 ends a sequence (with the probability that the tables give it).
        kinds: Kinds of prompts, equally likely; the contexts are split among them in order.

    Raises:
        ValueError: The contexts cannot be split evenly among the kinds.

    Example:
        >>> rollout = np.log([[0.5, 0.5], [0.9, 0.1]])
        >>> reference = np.log([[0.5, 0.5], [0.8, 0.2]])
        >>> world = Mixture({"rollout": rollout, "reference": reference}, prompts=2)
        >>> round(world.exact(Question("rollout", "reference")), 6)
        0.018345
        >>> len(world.sample(np.random.default_rng(0)))
        1600
    """

    log_probs: Mapping[str, Table]
    sampler: str = "rollout"
    prompts: int = 64
    sequences_per_prompt: int = 8
    max_length: int = 100
    ends: bool = False
    kinds: int = 1
    _kl: dict[tuple[str, str], NDArray[np.float64]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        contexts = len(self.log_probs[self.sampler])
        if contexts % self.kinds:
            raise ValueError(f"{contexts} contexts cannot be split evenly among {self.kinds} kinds")

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles with a policy."""
        return tuple(self.log_probs)

    @property
    def shape(self) -> tuple[int, int]:
        """Contexts and alphabet."""
        contexts, alphabet = self.log_probs[self.sampler].shape
        return contexts, alphabet

    @cached_property
    def entropy(self) -> dict[str, NDArray[np.float64]]:
        """Entropy at each context, by role, [contexts], in nats."""
        return {
            role: categorical.entropy(log_probs=table) for role, table in self.log_probs.items()
        }

    def kl(self, p: str, q: str) -> NDArray[np.float64]:
        """KL(p‖q) of the next token at each context, [contexts], in nats."""
        if (p, q) not in self._kl:
            sides = {"log_probs_p": self.log_probs[p], "log_probs_q": self.log_probs[q]}
            self._kl[p, q] = categorical.exact(**sides)
        return self._kl[p, q]

    @cached_property
    def vocabulary(self) -> NDArray[np.object_]:
        """The bytes of each token id, some of them not ASCII; None for the end, a special id."""
        words = [f" {token}".translate(_SPELLING).encode() for token in range(self.shape[1])]
        return np.array([None, *words[1:]] if self.ends else words, dtype=object)

    def exact(self, question: Question | str) -> float:
        """The answer: the KL at every context, averaged over the prefixes in question.

        Contexts come independently of the past, so the prefixes matter through the lengths:
        token_mean = E[length · KL of the kind] / E[length], sequence_sum its numerator.
        """
        question = Question.parse(question)
        kl_of = self.kl(question.p, question.q).reshape(self.kinds, -1)
        end = self._end(question.prefixes)
        if question.level == "sequence_mean":
            return float(np.mean(_sequence_mean(kl_of, end, self.max_length)))
        length = self.expected_lengths(question.prefixes)
        total = float(np.mean(length * kl_of.mean(axis=1)))
        return total if question.level == "sequence_sum" else total / float(np.mean(length))

    def expected_lengths(self, role: str) -> NDArray[np.float64]:
        """Expected tokens of a sequence that a role samples, by kind of prompt, [kinds]."""
        goes_on = 1.0 - self._end(role).mean(axis=1, keepdims=True)
        return (goes_on ** np.arange(self.max_length)).sum(axis=1)

    def joint(self, role: str) -> NDArray[np.float64]:
        """Probability of each (context, token) under a role, flat, [contexts × alphabet].

        Contexts count as often as the sampler meets them. Any formula for a pair of
        distributions, given two joints, then answers for a token of this world: χ², J, S, and,
        since the context belongs to the outcome, variances with the part between contexts.
        """
        length = self.expected_lengths(self.sampler)
        weight = np.repeat(length / length.mean(), self.shape[0] // self.kinds) / self.shape[0]
        return (weight[:, None] * np.exp(self.log_probs[role])).ravel()

    def sample(self, rng: np.random.Generator, *, exact: bool = False, top_k: int = 0) -> Columns:
        """Draw sequences by the sampler and log them (see ``logged``)."""
        return self.logged(self.draw(rng, self.log_probs[self.sampler]), exact=exact, top_k=top_k)

    def draw(self, rng: np.random.Generator, log_probs: Table) -> Draw:
        """Draw sequences from a table, whatever the sampler claims."""
        contexts, alphabet = self.shape
        each = contexts // self.kinds
        kind = np.repeat(rng.integers(self.kinds, size=self.prompts), self.sequences_per_prompt)
        size = (len(kind), self.max_length)
        context = kind[:, None] * each + rng.integers(each, size=size)
        keys = context + rng.random(size)
        own = log_probs is self.log_probs[self.sampler]
        cumulative = self._own_cumulative if own else _cumulative(log_probs)
        lengths = np.full(len(kind), self.max_length)
        if self.ends:
            ended = keys < cumulative[context, 0]
            lengths = np.where(ended.any(axis=1), ended.argmax(axis=1) + 1, lengths)
        alive = np.arange(self.max_length) < lengths[:, None]
        flat = context[alive]
        return Draw(lengths, flat, _places(cumulative.ravel(), keys[alive]) - flat * alphabet)

    @cached_property
    def _own_cumulative(self) -> NDArray[np.float64]:
        """The sampler's table as ``draw`` searches it: small samples would be all summing."""
        return _cumulative(self.log_probs[self.sampler])

    def logged(self, draw: Draw, *, exact: bool = False, top_k: int = 0) -> Columns:
        """What this world's tables say of a draw: log-probs, entropies, ids, bytes, text, prompts.

        Args:
            draw: The sampled tokens.
            exact: Whether to log the exact KL at each prefix too, for every pair of roles.
            top_k: How many of each role's largest log-probs to log; 0 for none.
        """
        lengths, contexts, tokens = draw
        place = contexts * self.shape[1] + tokens
        prompt = np.repeat(np.arange(self.prompts), self.sequences_per_prompt)
        pieces = self.vocabulary[tokens].tolist()
        pairs = permutations(self.roles, 2) if exact else ()
        heads = {role: head(table, top_k) for role, table in self.log_probs.items() if top_k}
        return Columns(
            lengths=lengths,
            mask=np.ones(len(tokens), dtype=np.bool_),
            log_probs={role: table.ravel()[place] for role, table in self.log_probs.items()},
            clusters=cluster_keys(prompt),
            cluster_kind="prompt",
            entropy={role: values[contexts] for role, values in self.entropy.items()},
            top_k={
                role: TopK(ids[contexts], logs[contexts]) for role, (ids, logs) in heads.items()
            },
            exact={str(Question(p, q)): self.kl(p, q)[contexts] for p, q in pairs},
            tokens=tokens,
            token_bytes=pieces,
            text=_texts(pieces, lengths),
        )

    def _end(self, role: str) -> NDArray[np.float64]:
        """Probability of the end at each context, [kinds, contexts of a kind]."""
        end = np.exp(self.log_probs[role][:, 0]) if self.ends else np.zeros(self.shape[0])
        return end.reshape(self.kinds, -1)


def _sequence_mean(
    kl_of: NDArray[np.float64], end: NDArray[np.float64], max_length: int
) -> NDArray[np.float64]:
    """E[Σ KL_t / length], by kind.

    The last context of a sequence that ended is likelier to be one where the end is likely, the
    contexts before it where it is not; the last one of a sequence that was cut is like any other.
    """
    goes_on = 1.0 - end.mean(axis=1, keepdims=True)
    length = np.arange(1, max_length + 1)
    is_cut = length == max_length
    last = np.where(is_cut, kl_of.mean(axis=1)[:, None], (end * kl_of).mean(axis=1)[:, None])
    passed = ((1.0 - end) * kl_of).mean(axis=1)[:, None]
    before = (length - 1) * goes_on ** np.maximum(length - 2, 0) * passed
    ends_here = np.where(is_cut, 1.0, 1.0 - goes_on)
    return ((goes_on ** (length - 1) * last + before * ends_here) / length).sum(axis=1)


def _cumulative(log_probs: Table) -> NDArray[np.float64]:
    """Context + cumulative probability of its tokens, [contexts, alphabet].

    Then one search over the flat table inverts all contexts at once. Tokens rarer than 1e-13
    are lost to rounding.
    """
    cumulative = np.cumsum(np.exp(log_probs), axis=-1)
    offset = np.arange(len(log_probs), dtype=np.float64)[:, None]
    return cumulative / cumulative[:, -1:] + offset


def _places(cumulative: NDArray[np.float64], keys: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where context + uniform falls, flat; sorted first, for the search is then 5 times faster."""
    order = np.argsort(keys)
    places = np.empty_like(order)
    places[order] = np.searchsorted(cumulative, keys[order], side="right")
    return places


def _texts(pieces: list[bytes | None], lengths: NDArray[np.int64]) -> list[str]:
    spoken, ends = [piece or b"" for piece in pieces], np.cumsum(lengths)
    spans = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [b"".join(spoken[a:b]).decode() for a, b in spans]
