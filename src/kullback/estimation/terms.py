"""From log-probs to the terms of one question, in blocks that stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, is_sentinel
from kullback.formulas.weights import Q_ALONE
from kullback.levels import segment_sums
from kullback.question import Question

BLOCK = 1 << 15  # tokens; some twenty float64 rows of a block fit the second-level cache

TERMS = (
    "tokens",
    "k1",
    "k2",
    "k3",
    "weight",  # w = p/s; 1 where p sampled
    "weight_squared",
    "q_over_s",  # q/s − 1, times the weight of the prefix: mean 0 if s sampled
    "truncated",  # min(u, 2) of the weight u that a trainer would use: p/s, or q/p on policy
    "cut",  # u above 2
    "clipped",  # u outside PPO's band
    "log_p_over_s",
    "log_q_over_s",
    "bet",  # log(1 + STAKE (q/s − 1)): its exponentials multiply to a martingale if s sampled
    "raw_k1",  # without the weight: what a log shows that forgot it
    "raw_k2",
    "raw_k3",
    "exact",
    "exact_tokens",
)
# Of these a sequence also keeps its token mean, for the level sequence_mean.
MEANS = ("k1", "k2", "k3", "exact")
PRODUCTS = (
    ("k1", "k1"),
    ("k1", "k3"),
    ("k3", "k3"),
    ("raw_k1", "raw_k1"),
    ("raw_k2", "raw_k2"),
    ("raw_k3", "raw_k3"),
)
TRUNCATED_AT = 2.0  # the usual ceiling of truncated importance sampling
STAKE = 0.1  # of the bet on q against s at each token
CLIP_BAND = (0.8, 1.2)  # the usual band of a clipped policy loss
INDEX = {name: i for i, name in enumerate(TERMS)}


@dataclass(frozen=True, slots=True)
class Usable:
    """Which tokens a question can be asked of: the others are counted, never read.

    Args:
        flags: In the mask, every log-prob there, and the ratio finite, [tokens].
        there: In the mask and every log-prob there, [tokens].
        masked: Tokens outside the mask.
        missing: Tokens in the mask with a log-prob that was not logged (NaN or −9999).
        infinite: Tokens in the mask outside the support of the sampler, or of q where p has mass.
    """

    flags: NDArray[np.bool_]
    there: NDArray[np.bool_]
    masked: int
    missing: int
    infinite: int

    @classmethod
    def of(cls, columns: Columns, question: Question) -> Usable:
        """Sort the tokens of a batch."""
        there = columns.mask.copy()
        for role in question.roles:
            values = columns.log_probs[role]
            there &= ~(np.isnan(values) | is_sentinel(values))
        finite = np.isfinite(columns.log_probs[question.sampler])
        p, q = columns.log_probs[question.p], columns.log_probs[question.q]
        # Where p gives no mass to what a third policy sampled, the term is 0 whatever q is.
        finite &= np.isfinite(q) & (p < np.inf) | np.isneginf(p)
        usable = there & finite
        masked = len(columns) - int(columns.mask.sum())
        missing = int(columns.mask.sum() - there.sum())
        return cls(usable, there, masked, missing, int(there.sum() - usable.sum()))


@dataclass(frozen=True, slots=True)
class Block:
    """The terms of some consecutive tokens, [terms, tokens], from ``start`` on."""

    start: int
    rows: NDArray[np.float64]


def blocks(columns: Columns, question: Question, usable: Usable) -> Iterator[Block]:
    """The terms of every token; zero where a token is not usable."""
    exact = columns.exact.get(f"KL({question.p}||{question.q})")
    prefix = _log_prefix_weight(columns, question, usable.flags)
    for start in range(0, len(columns), BLOCK):
        here = slice(start, start + BLOCK)
        used = usable.flags[here]
        # Select before computing: what stands at an unusable token must not reach an exp.
        p, q, s = (
            np.where(used, columns.log_probs[role][here], 0.0).astype(np.float64)
            for role in (question.p, question.q, question.sampler)
        )
        rows = _terms(p, q, s, None if prefix is None else prefix[here], used)
        if exact is not None:
            known = columns.mask[here] & ~np.isnan(exact[here])
            rows[INDEX["exact"]] = np.where(known, exact[here], 0.0)
            rows[INDEX["exact_tokens"]] = known
        yield Block(start, rows)


@np.errstate(over="ignore", invalid="ignore")  # what overflows becomes a reason
def _terms(
    p: NDArray[np.float64],
    q: NDArray[np.float64],
    s: NDArray[np.float64],
    prefix: NDArray[np.float64] | None,
    used: NDArray[np.bool_],
) -> NDArray[np.float64]:
    rows = np.zeros((len(TERMS), len(p)))
    rows[INDEX["tokens"]] = used
    possible = p > -np.inf
    log_q_over_p = np.where(possible, q, 0.0) - np.where(possible, p, 0.0)
    _add_ratio(rows, log_q_over_p)
    if prefix is None:
        rows[INDEX["weight"]] = rows[INDEX["weight_squared"]] = used
        rows[INDEX["log_q_over_s"]] = log_q_over_p
        _add_clips(rows, 1.0 + rows[INDEX["q_over_s"]], used)
        return rows
    _add_weight(rows, prefix + (p - s), prefix + (q - s))
    growth = np.expm1(q - s)
    rows[INDEX["q_over_s"]], rows[INDEX["bet"]] = np.exp(prefix) * growth, _bet(growth)
    rows[INDEX["log_p_over_s"]], rows[INDEX["log_q_over_s"]] = p - s, q - s
    _add_clips(rows, rows[INDEX["weight"]], used)
    return np.where(used, rows, 0.0)


def summed_k3(x: NDArray[np.float64], growth: NDArray[np.float64]) -> NDArray[np.float64]:
    """k3 from x = log q/p and expm1(x), for sums: 2e-4 off at |x| = 1e-12, which no sum can see.

    It is several times as fast as the public k3. A test ties the two.
    """
    return np.maximum(growth - x, 0.0)


def _add_ratio(rows: NDArray[np.float64], x: NDArray[np.float64]) -> None:
    """k1, k2, k3 and r − 1 from x = log q/p, all of samples from p."""
    growth = np.expm1(x)
    for name, values in (("k1", -x), ("k2", 0.5 * x * x), ("k3", summed_k3(x, growth))):
        rows[INDEX[name]] = rows[INDEX[f"raw_{name}"]] = values
    rows[INDEX["q_over_s"]], rows[INDEX["bet"]] = growth, _bet(growth)


def _bet(growth: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log of what a bet gains from q/s − 1; a gain past all floats counts as 1e300."""
    return np.log1p(STAKE * np.minimum(growth, 1e300))


def _add_weight(
    rows: NDArray[np.float64], log_weight: NDArray[np.float64], log_other: NDArray[np.float64]
) -> None:
    """Weigh the terms: w·k1, w·k2 and w·k3 = w(r − 1 − log r).

    Where p gives no mass to what s sampled, the first two are 0 and w·k3 is w·r = q/s alone; it
    is so from log r = Q_ALONE on, where the rest is lost in it and r itself may overflow.
    """
    weight = np.exp(log_weight)
    for name in ("k1", "k2", "k3"):
        rows[INDEX[name]] = np.where(weight > 0, weight * rows[INDEX[name]], 0.0)
    alone = log_other - log_weight > Q_ALONE
    rows[INDEX["k3"]] = np.where(alone, np.exp(log_other), rows[INDEX["k3"]])
    rows[INDEX["weight"]], rows[INDEX["weight_squared"]] = weight, weight * weight


def _add_clips(
    rows: NDArray[np.float64], weight: NDArray[np.float64], used: NDArray[np.bool_]
) -> None:
    low, high = CLIP_BAND
    rows[INDEX["truncated"]] = np.where(used, np.minimum(weight, TRUNCATED_AT), 0.0)
    rows[INDEX["cut"]] = used & (weight > TRUNCATED_AT)
    rows[INDEX["clipped"]] = used & ((weight < low) | (weight > high))


def _log_prefix_weight(
    columns: Columns, question: Question, used: NDArray[np.bool_]
) -> NDArray[np.float64] | None:
    """The log importance weight of what stands before each token, or None where p sampled.

    Zero for the sampler's prefixes; for p's prefixes the sum of log p/s from the start of the
    sequence up to the token, itself excluded.
    """
    if question.weight == "none":
        return None
    log_weight = np.zeros(len(columns))
    if question.weight == "cumulative":
        p, s = columns.log_probs[question.p], columns.log_probs[question.sampler]
        own = np.where(used, p, 0.0).astype(np.float64) - np.where(used, s, 0.0)
        for start, end in zip(columns.starts.tolist(), columns.ends.tolist(), strict=True):
            # One sequence at a time: a running sum over the batch would carry its rounding over.
            log_weight[start + 1 : end] = np.cumsum(own[start:end])[:-1]
    return log_weight


def by_sequence(block: Block, lengths: NDArray[np.int64]) -> tuple[slice, NDArray[np.float64]]:
    """The block's terms summed within each sequence that it touches; it may cut two."""
    ends = np.cumsum(lengths)
    stop = block.start + block.rows.shape[1]
    first = int(np.searchsorted(ends, block.start, side="right"))
    last = int(np.searchsorted(ends, stop, side="left")) + 1
    inner = np.clip(ends[first:last], block.start, stop)
    inside = np.diff(np.concatenate([[block.start], inner]))
    return slice(first, first + len(inside)), segment_sums(block.rows, inside)
