"""What each prompt brings as evidence: the sum of k3 over its tokens, and how many they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.arrays import to_numpy
from kullback.clusters import cluster_keys
from kullback.columns import Columns, is_sentinel, pack
from kullback.formulas.k_family import k3
from kullback.levels import segment_sums


@dataclass(frozen=True, slots=True, eq=False)
class PromptSums:
    """Sums of k3 and numbers of tokens by prompt; they add by prompt, over batches and ranks.

    A prompt whose completions are on several ranks is one prompt still: add the sums of the ranks
    before they are taken as evidence.

    Args:
        keys: A 64-bit key of each prompt (`cluster_keys` makes them of ids), ascending, [prompts].
        k3: Sum of k3 over the tokens of each prompt, [prompts], in nats, at least 0; +inf where
            q gave no mass to a token that p sampled.
        tokens: Tokens of each prompt that count, [prompts].

    Raises:
        ValueError: A prompt stands there twice, a sum is negative or missing, the numbers of
            tokens are no whole ones, or the lengths differ.

    Example:
        >>> here = PromptSums.of_ids(["a", "b"], k3=[0.1, 0.3], tokens=[10, 20])
        >>> there = PromptSums.of_ids(["b", "c"], k3=[0.1, 0.2], tokens=[5, 10])
        >>> both = here + there
        >>> len(both), round(float(both.k3.sum()), 6), int(both.tokens.max())
        (3, 0.7, 25)
    """

    keys: NDArray[np.uint64]
    k3: NDArray[np.float64]
    tokens: NDArray[np.int64]

    def __post_init__(self) -> None:
        _check(self.keys, self.k3, self.tokens)
        if (self.keys[1:] <= self.keys[:-1]).any():
            raise ValueError("the keys of prompts ascend, each prompt once; add its parts first")

    def __len__(self) -> int:
        return len(self.keys)

    def __radd__(self, other: int) -> PromptSums:
        # ``sum`` begins with 0.
        return self if other == 0 else NotImplemented

    def __add__(self, other: PromptSums) -> PromptSums:
        return _by_prompt(
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.k3, other.k3]),
            np.concatenate([self.tokens, other.tokens]),
        )

    @classmethod
    def of_ids(cls, ids: Any, *, k3: ArrayLike, tokens: ArrayLike) -> PromptSums:
        """Sums that a loop has made itself, one row per sequence or per prompt.

        Args:
            ids: The prompt id of each row; rows of one prompt are added.
            k3: Sum of k3 over the tokens of each row, in nats; of NumPy, torch or JAX.
            tokens: Tokens of each row, whole numbers of any type.

        Raises:
            ValueError: As for the class.
        """
        sums, counts = to_numpy(k3, "k3").astype(np.float64), to_numpy(tokens, "tokens")
        if (counts % 1 == 0).all():  # a collective of floats brings 12.0
            counts = counts.astype(np.int64)
        return _by_prompt(cluster_keys(ids), sums, counts)

    @classmethod
    def of(cls, columns: Columns, p: str, q: str) -> PromptSums:
        """The sums of a batch of columns (of `kb.read`, `kb.pack` or a world).

        Args:
            columns: The batch; its clusters are the prompts.
            p: The role that sampled.
            q: The other role.

        Raises:
            ValueError: A role has no log-probs, one is missing at a token that counts, or p gives
                no mass to what it sampled.
        """
        for role in (p, q):
            if role not in columns.log_probs:
                raise ValueError(
                    f"there are no log-probs of {role}: {', '.join(columns.log_probs)}"
                )
        log_p, log_q = (_counted(columns, role, sampled=role == p) for role in (p, q))
        with np.errstate(over="ignore"):
            by_sequence = segment_sums(k3(log_q - log_p), columns.lengths)
        counts = segment_sums(columns.mask.astype(np.float64), columns.lengths)
        return _by_prompt(columns.clusters, by_sequence, counts.astype(np.int64))


def prompt_sums(
    *,
    log_p: ArrayLike,
    log_q: ArrayLike,
    mask: ArrayLike | None = None,
    lengths: ArrayLike | int | None = None,
    clusters: Any = None,
) -> PromptSums:
    """The sums by prompt of a batch: what `Evidence` takes.

        S = Σ k3(log q − log p) over the tokens of a prompt, T = how many they are

    All completions of a prompt belong into one sum. The mean of S is that of the exact KL(p‖q) at
    the prefixes, summed, if p sampled, q was fixed before, q puts no mass where p has none, and
    nothing was selected on the outcome. It has no gradient: it is a number for a decision.

    Args:
        log_p: Log-probs under p, which sampled, [sequences, tokens] or flat with ``lengths``, in
            nats; of NumPy, torch or JAX, on any device.
        log_q: Log-probs under q of the same tokens; −inf makes the sum infinite.
        mask: Which tokens count, bool or 0/1, of the same shape.
        lengths: The tokens of each sequence of flat arrays; 1 means independent samples.
        clusters: The prompt id of each sequence, [sequences]; by default each sequence is a
            prompt of its own, which holds only if no two share one.

    Returns:
        One row per prompt.

    Raises:
        ValueError: Shapes differ, a log-prob is missing (NaN, −9999) at a token that counts, or
            log_p is −inf there.
        TypeError: An array is being traced (torch.compile, jit, vmap, grad) and has no value yet.

    Example:
        >>> sums = prompt_sums(
        ...     log_p=[[-1.0, -2.0], [-0.5, 0.0], [-1.0, -1.0]],
        ...     log_q=[[-1.5, -2.0], [-0.5, 0.0], [-1.0, -1.0]],
        ...     mask=[[1, 1], [1, 0], [1, 1]],
        ...     clusters=["one", "one", "other"],
        ... )
        >>> sorted(sums.k3.round(6).tolist()), sorted(sums.tokens.tolist())
        ([0.0, 0.106531], [2, 3])
    """
    columns = pack({"p": log_p, "q": log_q}, mask=mask, lengths=lengths, clusters=clusters)
    return PromptSums.of(columns, "p", "q")


def _counted(columns: Columns, role: str, *, sampled: bool) -> NDArray[np.float64]:
    """The log-probs of a role, 0 outside the mask; refused where one that counts is missing."""
    values = np.where(columns.mask, columns.log_probs[role], 0.0).astype(np.float64)
    missing = np.isnan(values) | is_sentinel(values) | (values == np.inf)
    if sampled:
        missing |= values == -np.inf
    if missing.any():
        token = int(missing.argmax())
        raise ValueError(
            f"{columns.place(token)}: the log-prob of {role} is {values[token]:g}; evidence needs "
            "every sampled token; mask only what was not sampled (padding, prompts, tool output)"
        )
    return values


def _by_prompt(
    keys: NDArray[np.uint64], sums: NDArray[np.float64], tokens: NDArray[np.int64]
) -> PromptSums:
    """Rows of the same prompt added."""
    _check(keys, sums, tokens)
    distinct, group = np.unique(keys, return_inverse=True)
    added = np.bincount(group, weights=sums, minlength=len(distinct))
    counts = np.bincount(group, weights=tokens, minlength=len(distinct))
    return PromptSums(distinct, added.astype(np.float64), counts.astype(np.int64))


def _check(keys: NDArray[np.uint64], sums: NDArray[np.float64], tokens: NDArray[np.int64]) -> None:
    if not keys.shape == sums.shape == tokens.shape or keys.ndim != 1:
        raise ValueError(
            f"prompts have shape {keys.shape}, sums of k3 {sums.shape}, tokens {tokens.shape}: "
            "give flat arrays, one of each per row"
        )
    if len(wrong := sums[~(sums >= 0)]):
        raise ValueError(
            f"a sum of k3 is {wrong[0]:g}: k3 is never negative, and none may be missing"
        )
    if tokens.dtype.kind not in "iu" or (tokens < 0).any():
        raise ValueError("tokens are whole numbers, at least 0, one per row")
