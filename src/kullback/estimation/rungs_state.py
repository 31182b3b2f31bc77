"""What better data than sampled log-probs say of a question: heads, and an exact KL at places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, TopK
from kullback.estimation.groups import Groups
from kullback.estimation.terms import BLOCK, Block, Usable, by_sequence
from kullback.formulas import partial
from kullback.formulas.k_family import k1, k3
from kullback.heads import ABSENT, shared
from kullback.levels import segment_sums
from kullback.question import Question

FEWEST_KNOWN = 100  # positions with an exact KL, below which nothing rests on them alone
FEWEST_SAMPLED = 20.0  # effective clusters of theirs, below which nothing does
ENTRIES = 1 << 17  # of heads that are worked on at a time
NAMES = (
    "headed",  # prefixes with ids of which both log-probs are known
    "conditional",  # the conditional form less k1: what to add to the sum of k1
    "control",  # 1[outside the head] less its probability: mean 0
    "centred",  # the same times the guess how far the mean of log(p/q) outside is from inside
    "cross",  # mean products of the conditional form with the two controls
    "cross_centred",
    "spread",  # their variances and covariance, given the prefix
    "spread_both",
    "spread_centred",
    "tail",  # (r − 1) outside the head less its mean: mean 0, and heavy-tailed
    "bound",
    "biased_head",
    "biased_head_renormalized",
    "known",  # tokens at which the exact KL is known, and there:
    "known_exact",
    "known_bound",
    "known_k3",
    "known_cross",  # exact · bound
    "known_square",  # bound²
)
ROW = {name: i for i, name in enumerate(NAMES)}


@dataclass(frozen=True, slots=True)
class RungsState:
    """Sums by cluster of what heads and exact columns add. ``a + b`` is the state of both.

    Only where p itself sampled. Batches without heads and exact columns add nothing, and a prefix
    without a head is one whose head is empty: there the conditional form is k1.

    Args:
        groups: The sums, the rows named by ``NAMES``, over the clusters of the question's state.
        heavy: Prefixes at which a head weighs more than 1, beyond rounding: it was not used.
    """

    groups: Groups
    heavy: int

    @classmethod
    def empty(cls) -> RungsState:
        """The state of nothing."""
        no_keys = np.zeros(0, dtype=np.uint64)
        return cls(Groups(no_keys, np.zeros((len(NAMES), 0)), no_keys, folded=False), 0)

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # what overflows becomes a reason
    def of(cls, columns: Columns, question: Question, usable: Usable) -> RungsState:
        """The state of one batch."""
        heads = _heads(columns, question)
        exact = columns.exact.get(f"KL({question.p}||{question.q})")
        if question.weight != "none" or (heads is None and exact is None):
            return cls.empty()
        sums, heavy = np.zeros((len(NAMES), len(columns.lengths))), 0
        for start, stop in _pieces(columns, heads):
            here = slice(start, stop)
            rows = np.zeros((len(NAMES), stop - start))
            used = usable.flags[here]
            p, q = (
                np.where(used, columns.log_probs[role][here], 0.0).astype(np.float64)
                for role in (question.p, question.q)
            )
            if heads is not None and columns.tokens is not None:
                mine, theirs = (TopK(one.ids[here], one.log_probs[here]) for one in heads)
                heavy += _add_heads(rows, mine, theirs, columns.tokens[here], q - p, used)
            if exact is not None:
                _add_known(rows, exact[here])
                rows[ROW["known_k3"]] = np.where(rows[ROW["known"]] > 0, k3(q - p), 0.0)
            touched, part = by_sequence(Block(start, np.where(used, rows, 0.0)), columns.lengths)
            sums[:, touched] += part
        filled = segment_sums(usable.flags.astype(np.float64), columns.lengths) > 0
        return cls(Groups.of(columns.clusters[filled], sums[:, filled]), heavy)

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: RungsState) -> RungsState:
        for one, another in ((self, other), (other, self)):
            if not len(one.groups.keys) and not one.heavy:
                return another
        return RungsState(self.groups + other.groups, self.heavy + other.heavy)

    def total(self, name: str) -> float:
        """The sum of one row over everything."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.groups.sums[ROW[name]].sum())


def _heads(columns: Columns, question: Question) -> tuple[TopK, TopK] | None:
    """The heads of p and q, where both are there and the sampled ids with them."""
    p, q = columns.top_k.get(question.p), columns.top_k.get(question.q)
    if p is None or q is None or columns.tokens is None or not p.ids.size or not q.ids.size:
        return None
    return p, q


def _pieces(columns: Columns, heads: tuple[TopK, TopK] | None) -> Iterator[tuple[int, int]]:
    """Where tokens are cut so that a piece stays in the cache."""
    width = 0 if heads is None else sum(one.ids.shape[1] for one in heads)
    step = max(1, min(BLOCK, ENTRIES // max(width, 1)))
    for start in range(0, len(columns), step):
        yield start, min(start + step, len(columns))


def _add_heads(
    rows: NDArray[np.float64],
    p: TopK,
    q: TopK,
    tokens: NDArray[np.int64],
    log_q_over_p: NDArray[np.float64],
    used: NDArray[np.bool_],
) -> int:
    """Fill the rows of the heads; how many heads were too heavy to be used."""
    both = shared(p, q)
    heavy = used & (too_heavy(p) | too_heavy(q))
    known = (both.ids != ABSENT) & (used & ~heavy)[:, None]
    log_p, log_q = (np.where(known, one.log_probs, np.nan) for one in (p, both))
    inside = (known & (both.ids == tokens[:, None])).any(axis=1)
    head = partial.head(log_p=log_p, log_q=log_q)
    there = known.any(axis=1)
    rows[ROW["headed"]] = there
    form: dict[str, Any] = {"log_q_over_p": log_q_over_p, "inside": inside, "head": head}
    rows[ROW["conditional"]] = np.where(there, partial.conditional(**form) - k1(log_q_over_p), 0.0)
    control, guess = partial.head_control(inside=inside, head=head), partial.centre(head)
    rows[ROW["control"]], rows[ROW["centred"]] = control, guess * control
    # Given the prefix: the variance of the control, and its product with the conditional form, of
    # which the part inside the head is known and only the part outside was sampled.
    spread = np.minimum(head.p, 1.0) * head.p_tail
    cross = np.where(inside, 0.0, k1(log_q_over_p) * (1 - head.p_tail)) - head.p_tail * head.nats
    for name, factor in (("cross", 1.0), ("cross_centred", guess)):
        rows[ROW[name]] = np.where(there, factor * cross, 0.0)
    rows[ROW["spread"]], rows[ROW["spread_both"]] = spread, guess * spread
    rows[ROW["spread_centred"]] = guess * guess * spread
    rows[ROW["tail"]] = np.where(there, partial.tail_control(**form), 0.0)
    rows[ROW["bound"]] = partial.lower_bound(head)
    rows[ROW["biased_head"]] = partial.biased_head(head)
    rows[ROW["biased_head_renormalized"]] = partial.biased_head_renormalized(head)
    return int(heavy.sum())


def too_heavy(head: TopK) -> NDArray[np.bool_]:
    """Where a head weighs more than 1, beyond rounding, [tokens]."""
    logs = np.where((head.ids == ABSENT) | np.isnan(head.log_probs), -np.inf, head.log_probs)
    with np.errstate(over="ignore"):
        return np.exp(logs).sum(axis=1, dtype=np.float64) > partial.HEAVIEST


def _add_known(rows: NDArray[np.float64], exact: NDArray[np.float64]) -> None:
    """Fill the rows of the exact KL where it is known."""
    known = ~np.isnan(exact)
    kl, bound = (np.where(known, values, 0.0) for values in (exact, rows[ROW["bound"]]))
    rows[ROW["known"]], rows[ROW["known_exact"]], rows[ROW["known_bound"]] = known, kl, bound
    rows[ROW["known_cross"]], rows[ROW["known_square"]] = kl * bound, bound * bound
