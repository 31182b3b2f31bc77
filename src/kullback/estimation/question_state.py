"""Everything that is estimated of one question, as sums that merge."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns
from kullback.estimation.contributors import (
    Candidates,
    Contributor,
    candidates,
    largest,
    merged,
)
from kullback.estimation.groups import Groups
from kullback.estimation.histogram import Histogram
from kullback.estimation.interval import Interval, ratio_interval
from kullback.estimation.related_rows import RelatedRows
from kullback.estimation.rungs_state import RungsState
from kullback.estimation.terms import (
    INDEX,
    MEANS,
    PRODUCTS,
    TERMS,
    Block,
    Usable,
    blocks,
    by_sequence,
)
from kullback.levels import segment_sums
from kullback.question import Question

# ``path`` is the weight of the whole sequence, the product of p/s: of mean 1 if s sampled.
GROUP_TERMS = ("sequences", *TERMS, *(f"mean_of_{name}" for name in MEANS), "path")
ROW = {name: i for i, name in enumerate(GROUP_TERMS)}
LAGS = (-1, 0, 1)
FAINTEST = 4.0  # nats: below e^−4 log-probs count alike where two columns are correlated
CUT = 4.0  # nats²: above, a difference speaks of its token, not of its neighbors


@dataclass(frozen=True, slots=True)
class QuestionState:
    """The sums of one question over some tokens. ``a + b`` is the state of both.

    Args:
        question: What is asked.
        groups: First-order sums by cluster, the rows named by ``GROUP_TERMS``.
        products: Sums of products of terms over all tokens, in the order of ``PRODUCTS``.
        log_q_over_p: The distribution of log r over the sampled tokens.
        of_sequences: The distribution of the sequences' own KL by k1: their sums where the level
            is the sum, else their token means.
        lags: Count, sum, sum of squares and of squares cut at 4 of the differences between log p
            and log q at each lag, with q moved and with p moved, [2, lags, 4].
        association: Count, sums, sums of squares and of products of −log s and −log q, each cut
            at 4, over the tokens of both: [6].
        related: Sequences in which these two go together, and those in which they do not.
        masked: Tokens outside the mask.
        missing: Tokens in the mask of which a log-prob was not logged.
        infinite: Tokens in the mask outside a support.
        shortest: Usable tokens of the shortest sequence that has any.
        longest: Usable tokens of the longest.
        weight_max: The largest importance weight.
        size_k1: Sum of |w·k1|, against which a single token's share is measured.
        top_k1: The tokens with the largest |w·k1|.
        top_k3: The tokens with the largest w·k3.
        rungs: What heads and exact columns add.
    """

    question: Question
    groups: Groups
    products: NDArray[np.float64]
    log_q_over_p: Histogram
    of_sequences: Histogram
    lags: NDArray[np.float64]
    association: NDArray[np.float64]
    related: RelatedRows
    masked: int
    missing: int
    infinite: int
    shortest: int
    longest: int
    weight_max: float
    size_k1: float
    top_k1: tuple[Contributor, ...]
    top_k3: tuple[Contributor, ...]
    rungs: RungsState

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # what overflows becomes a reason
    def of(cls, columns: Columns, question: Question) -> QuestionState:
        """The state of one batch.

        Raises:
            KeyError: The batch has no log-probs of a role of the question.
        """
        usable = Usable.of(columns, question)
        sums = np.zeros((len(TERMS), len(columns.lengths)))
        products, size, weight_max = np.zeros(len(PRODUCTS)), 0.0, 0.0
        tops: dict[str, list[Candidates]] = {"k1": [], "k3": []}
        for block in blocks(columns, question, usable):
            touched, part = by_sequence(block, columns.lengths)
            sums[:, touched] += part
            products += _products(block)
            size += float(np.abs(block.rows[INDEX["k1"]]).sum())
            weight_max = max(weight_max, float(block.rows[INDEX["weight"]].max(initial=0.0)))
            for name, top in tops.items():
                top.append(candidates(block, name))
        tokens = sums[INDEX["tokens"]]
        filled = tokens > 0
        moments = _associated(columns, question, usable.flags)
        return cls(
            question=question,
            groups=Groups.of(columns.clusters[filled], _with_means(sums[:, filled])),
            products=products,
            log_q_over_p=_histogram(columns, question, usable),
            of_sequences=_of_sequences(question, sums[:, filled]),
            lags=_lagged(columns, question, usable.flags),
            association=moments.sum(axis=1),
            related=RelatedRows.of(columns, moments),
            masked=usable.masked,
            missing=usable.missing,
            infinite=usable.infinite,
            shortest=int(tokens[filled].min()) if filled.any() else 0,
            longest=int(tokens.max(initial=0)),
            weight_max=weight_max,
            size_k1=size,
            top_k1=largest(columns, question, tops["k1"]),
            top_k3=largest(columns, question, tops["k3"]),
            rungs=RungsState.of(columns, question, usable),
        )

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: QuestionState) -> QuestionState:
        if self.question != other.question:
            raise ValueError(f"{self.question} and {other.question} are two questions: do not add")
        one_is_empty = not (self.longest and other.longest)  # its shortest is 0, and no minimum
        return replace(
            self,
            groups=self.groups + other.groups,
            products=self.products + other.products,
            log_q_over_p=self.log_q_over_p + other.log_q_over_p,
            of_sequences=self.of_sequences + other.of_sequences,
            lags=self.lags + other.lags,
            association=self.association + other.association,
            related=self.related + other.related,
            masked=self.masked + other.masked,
            missing=self.missing + other.missing,
            infinite=self.infinite + other.infinite,
            shortest=(max if one_is_empty else min)(self.shortest, other.shortest),
            longest=max(self.longest, other.longest),
            weight_max=max(self.weight_max, other.weight_max),
            size_k1=self.size_k1 + other.size_k1,
            top_k1=merged([*self.top_k1, *other.top_k1]),
            top_k3=merged([*self.top_k3, *other.top_k3]),
            rungs=self.rungs + other.rungs,
        )

    def product(self, a: str, b: str) -> float:
        """The sum over all tokens of a product of two terms."""
        return float(self.products[PRODUCTS.index((a, b))])

    def by_group(self, term: str) -> NDArray[np.float64]:
        """The sums of one term, [groups]."""
        return self.groups.sums[ROW[term]]

    def total(self, term: str) -> float:
        """The sum of one term over everything; NaN where parts of it overflow both ways."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.by_group(term).sum())

    def mean(self, term: str) -> float:
        """The mean of one term over the usable tokens; NaN without any."""
        tokens = self.tokens
        return self.total(term) / tokens if tokens else np.nan

    def effective_clusters(self, sizes: str = "tokens") -> float:
        """Kish's effective number of clusters, each as large as its ``tokens`` or ``sequences``."""
        return self.groups.effective(ROW[sizes])

    def per_token(self, sums: NDArray[np.float64]) -> Interval:
        """The mean per token of sums by group, with its clustered error."""
        sizes, effective = self.by_group("tokens"), self.effective_clusters()
        return ratio_interval(sums, sizes, effective=effective, confidence=0.95)

    @property
    def distance(self) -> float:
        """The root mean square of log q − log p, in nats."""
        return math.sqrt(2 * self.mean("raw_k2"))

    @property
    def squared_growth(self) -> float:
        """The sum of (q/p − 1)², which is (k3 − k1)²."""
        squares = self.product("k3", "k3"), self.product("k1", "k3"), self.product("k1", "k1")
        return squares[0] - 2 * squares[1] + squares[2]

    @property
    def slope(self) -> float:
        """Of log q on log s, both cut; NaN where s does not vary."""
        count, s, q, ss, _, sq = self.association
        spread = count * ss - s * s
        return float((count * sq - s * q) / spread) if spread > 0 else np.nan

    @property
    def correlation(self) -> float:
        """Of the sampler's log-probs with those of q, both cut; NaN where a side does not vary."""
        count, s, q, ss, qq, sq = self.association
        with np.errstate(over="ignore", invalid="ignore"):
            spread = (count * ss - s * s) * (count * qq - q * q)
            return float((count * sq - s * q) / np.sqrt(spread)) if spread > 0 else np.nan

    @property
    def tokens(self) -> int:
        """Usable tokens."""
        return int(self.total("tokens"))

    @property
    def sequences(self) -> int:
        """Sequences with a usable token."""
        return int(self.total("sequences"))


def _products(block: Block) -> NDArray[np.float64]:
    return np.array([(block.rows[INDEX[a]] * block.rows[INDEX[b]]).sum() for a, b in PRODUCTS])


def _with_means(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put the number of sequences before the terms, and behind their token means and weights."""
    means = sums[[INDEX[name] for name in MEANS]] / sums[INDEX["tokens"]]
    path = np.exp(sums[[INDEX["log_p_over_s"]]])
    return np.concatenate([np.ones((1, sums.shape[1])), sums, means, path])


def _histogram(columns: Columns, question: Question, usable: Usable) -> Histogram:
    p, q = columns.log_probs[question.p], columns.log_probs[question.q]
    used = usable.flags & (p > -np.inf)
    return Histogram.of(q[used].astype(np.float64) - p[used])


def _of_sequences(question: Question, sums: NDArray[np.float64]) -> Histogram:
    k1, tokens = sums[INDEX["k1"]], sums[INDEX["tokens"]]
    values = k1 if question.level == "sequence_sum" else k1 / tokens
    return Histogram.of(values[np.isfinite(values)])


def _associated(
    columns: Columns, question: Question, used: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The moments of −log s and −log q, cut so that a few unlikely tokens cannot decide, [6, n].

    Two policies find the same tokens likely, if not equally; log-probs of different tokens are
    hardly correlated.
    """
    s, q = (
        np.where(used, np.minimum(-columns.log_probs[role], FAINTEST), 0.0).astype(np.float64)
        for role in (question.sampler, question.q)
    )
    moments = (used.astype(np.float64), s, q, s * s, q * q, s * q)
    return np.array([segment_sums(one, columns.lengths) for one in moments])


def _lagged(columns: Columns, question: Question, used: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The differences between log p and log q at lags of −1, 0 and 1: small at the true lag.

    They are taken at tokens with a neighbor on either side, with q moved (log p(x_t) − log
    q(x_{t+lag})) and with p moved (log p(x_{t−lag}) − log q(x_t)); and d² is summed as it is and
    cut at 4. Else one token that q dislikes, at the same place of every sequence (a format token,
    the end of text), would stand at one lag and not at the others.
    """
    fit = used & np.isfinite(columns.log_probs[question.p])
    p, q = (
        np.where(fit, columns.log_probs[role], 0.0).astype(np.float64)
        for role in (question.p, question.q)
    )
    first = np.zeros(len(columns) + 1, dtype=bool)
    first[columns.starts] = True
    inner = fit[:-2] & fit[1:-1] & fit[2:] & ~first[1:-2] & ~first[2:-1]

    def moved(values: NDArray[np.float64], lag: int) -> NDArray[np.float64]:
        return values[1 + lag : len(columns) - 1 + lag]

    sums = np.zeros((2, len(LAGS), 4))
    for i, lag in enumerate(LAGS):
        for side, d in enumerate((moved(p, 0) - moved(q, lag), moved(p, -lag) - moved(q, 0))):
            differences = np.where(inner, d, 0.0)
            # Not np.dot: a BLAS may split a sum among its threads, and the last bits with it.
            squares = differences * differences
            cut = np.minimum(squares, CUT)
            sums[side, i] = inner.sum(), differences.sum(), squares.sum(), cut.sum()
    return sums
