"""Did a KL change between two summaries, or is it noise? Differences paired by cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.estimation.estimate import (
    TOO_FEW,
    Estimate,
    from_state,
    ratio_of,
    sizes_of,
)
from kullback.estimation.groups import Groups
from kullback.estimation.interval import FEWEST_EFFECTIVE
from kullback.estimation.question_state import ROW, QuestionState
from kullback.estimation.summary import Summary
from kullback.question import LEVELS, Question

# Of the sums of the clusters' absolute values. Sums of the same terms in another order differ by
# less, and that is no change of a policy.
ROUNDING = 1e-12

# The term whose means are compared. Of auto it is k1: each side's auto decides on its own whether
# k3 misses a hole, and where the two decide differently, so do the methods.
TERMS = {"auto": "k1", "k1": "k1", "k2": "k2", "k3": "k3", "exact": "exact"}


class Change(NamedTuple):
    """A difference of two means, B − A, with Student's interval; NaN where there is none."""

    mean: float
    low: float
    high: float
    standard_error: float
    degrees_of_freedom: float


NO_CHANGE_KNOWN = Change(*[float("nan")] * 5)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a KL differs between two sides, B − A, in nats; a difference can be negative.

        difference = m_b − m_a,  se² = Σ_c d_c²,
        d_c = √(n_b/(n_b − 1)) (b_c − m_b w_c)/Σ w − √(n_a/(n_a − 1)) (a_c − m_a v_c)/Σ v

    b_c / w_c and a_c / v_c are the sums above and below the line of each side's mean (tokens or
    sequences, as the level says), n_b and n_a its clusters, and c runs over the clusters of either
    side: one that a side does not have counts as 0 there. So what a prompt does to both sides
    cancels, and prompts of one side alone add as independent ones do.

    Student's t has Satterthwaite's degrees of freedom: the squares d_c² of clusters of A alone, of
    B alone and of both count as three variances, each known from Kish's effective number e of its
    clusters, times 1 − 1/e of its whole side for the mean that was fitted. Fully paired these are
    e − 1, as of an estimate; of sides that share nothing they are Welch's.

    It holds if on each side the policies were fixed before that side's tokens were sampled, and
    nothing was selected on the outcome. Prompts that are the same must have the same ids. Under few
    clusters or heavy tails the interval covers less than it says.

    Args:
        question: What both sides answer.
        method: The estimator: ``k1``, ``k2``, ``k3`` or ``exact``.
        a: The estimate of the first side.
        b: The estimate of the second side.
        difference: b − a; NaN where there is none, and ``reason`` says why.
        low: Lower end of its interval; low ≤ difference ≤ high.
        high: Upper end.
        standard_error: Clustered standard error of the difference.
        degrees_of_freedom: Of Student's t.
        confidence: Nominal coverage of the interval.
        scope: What it speaks of: ``new prompts`` or ``new sequences``, by exact columns too.
        verdict: ``rose`` or ``fell`` if the interval leaves 0 out (and the difference is more than
            rounding), else ``within-noise``; ``unknown`` where there is no interval.
        shared: Clusters that both sides have (an estimate where a side has more than 1024).
        only_a: Clusters of A alone.
        only_b: Clusters of B alone.
        on_shared: The difference over the shared clusters alone, where there are others too and
            none share a group: the other one is also a difference of the prompts.
        marks: What is known to be wrong with either estimate.
        reason: Why there is no number or no interval, else None.

    Example:
        >>> from kullback.columns import pack
        >>> from kullback.estimation.summary import summarize
        >>> old = [[-1.0, -0.5], [-2.0, -1.0], [-0.25, -1.5]]
        >>> step_3, step_7 = [[-1.1, -0.5], [-2.3, -1.0], [-0.25, -1.75]], [[-1.5, -1.0]] * 3
        >>> a, b = (
        ...     summarize([pack({"old": old, "current": new}, clusters=["x", "y", "z"])])
        ...     for new in (step_3, step_7)
        ... )
        >>> [found] = compare(a, b)
        >>> round(found.difference, 4), round(found.standard_error, 4), found.shared, found.verdict
        (0.1, 0.2566, 3, 'within-noise')
    """

    question: Question
    method: str
    a: Estimate
    b: Estimate
    difference: float
    low: float
    high: float
    standard_error: float
    degrees_of_freedom: float
    confidence: float
    scope: str
    verdict: str
    shared: int
    only_a: int
    only_b: int
    on_shared: Change | None = None
    marks: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def unit(self) -> str:
        """The unit of the difference."""
        return self.question.unit

    def __str__(self) -> str:
        what = f"{self.question} by {self.method}: B - A"
        if self.difference != self.difference:
            return f"{what} has no number ({self.reason})"
        span = f"[{self.low:.3g}, {self.high:.3g}] at {self.confidence:.0%}"
        kind = self.scope.removeprefix("new ")
        pairing = f"paired by {self.shared} {kind}" if self.shared else f"no shared {kind}"
        marks = f"; {', '.join(self.marks)}" if self.marks else ""
        size = f"{self.difference:.4g} {self.unit}"
        return f"{what} = {size}, {self.reason or span}, {pairing}{marks}"


def compare(
    a: Summary, b: Summary, *, method: str = "auto", confidence: float = 0.95
) -> tuple[Comparison, ...]:
    """How each KL that both summaries answer differs between them, B − A, paired by cluster.

    ``Comparison`` has the formula and its conditions. Prompts of one id are paired. Sequences
    without prompt ids pair with nothing but themselves (the same row of the same file).

    Args:
        a: The first side.
        b: The second side.
        method: ``auto`` (k1), ``k1``, ``k2``, ``k3`` or ``exact``.
        confidence: Nominal coverage of each interval on its own.

    Returns:
        One comparison for each question of both, in the order of the first side.

    Raises:
        ValueError: No question is common, one side is clustered by prompt and the other by
            sequence, the method is unknown, or the confidence is not between 0 and 1.

    Example:
        >>> from kullback.columns import pack
        >>> from kullback.estimation.summary import summarize
        >>> side = summarize([pack({"old": [[-1.0], [-0.5]], "current": [[-1.5], [-0.25]]})])
        >>> [same] = compare(side, side)
        >>> same.difference, same.standard_error, same.verdict
        (0.0, 0.0, 'within-noise')
    """
    if a.cluster_kind != b.cluster_kind:
        raise ValueError(
            f"A is clustered by {a.cluster_kind} and B by {b.cluster_kind}: log prompt ids on both "
            "sides or on none"
        )
    common = [question for question in a.questions if question in b.questions]
    if not common:
        raise ValueError(_nothing_in_common(a.questions, b.questions))
    how = (method, confidence, f"new {a.cluster_kind}s")
    return tuple(_compared(a.questions[one], b.questions[one], *how) for one in common)


def _nothing_in_common(a: Iterable[Question], b: Iterable[Question]) -> str:
    for one in a:
        for other in b:
            if (one.roles, one.prefixes) == (other.roles, other.prefixes):
                return (
                    f"KL({one.p}||{one.q}) is answered {LEVELS[one.level]} by A and "
                    f"{LEVELS[other.level]} by B: ask both at one level"
                )
    ours, theirs = (", ".join(map(str, side)) for side in (a, b))
    return f"A answers {ours} and B {theirs}: no question is common; ask both the same"


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what overflows is a reason
def _compared(
    a: QuestionState, b: QuestionState, method: str, confidence: float, scope: str
) -> Comparison:
    if method not in TERMS:
        raise ValueError(f"method {method!r} is none of {', '.join(TERMS)}")
    term = TERMS[method]
    one, other = (from_state(state, term, confidence, scope=scope) for state in (a, b))
    shared = a.groups.shared(b.groups)
    only_a, only_b = (max(side.groups.clusters - shared, 0) for side in (a, b))
    change, on_shared, verdict = NO_CHANGE_KNOWN, None, "unknown"
    reason = next(
        (f"{name}: {e.reason}" for name, e in (("A", one), ("B", other)) if e.mean != e.mean), None
    )
    if reason is None:
        ours, theirs = _sides(a, b, term, paired=bool(shared))
        change, reason = _change(ours, theirs, confidence)
        if shared and (only_a or only_b) and not (a.groups.folded or b.groups.folded):
            both = (ours.sizes > 0) & (theirs.sizes > 0)
            on_shared, _ = _change(ours.at(both), theirs.at(both), confidence)
        verdict = _verdict(change, ROUNDING * (ours.magnitude + theirs.magnitude))
    return Comparison(
        question=a.question,
        method=term,
        a=one,
        b=other,
        difference=change.mean,
        **{name: value for name, value in change._asdict().items() if name != "mean"},
        confidence=confidence,
        scope=scope,
        verdict=verdict,
        shared=shared,
        only_a=only_a,
        only_b=only_b,
        on_shared=on_shared,
        marks=tuple(dict.fromkeys((*one.marks, *other.marks))),
        reason=reason,
    )


def difference(a: QuestionState, b: QuestionState, confidence: float = 0.95) -> Change:
    """The mean of k1 in b less that in a, paired by cluster; NaN where there is none.

    The two may overlap (all tokens, and some of them) or be of two questions over the same tokens:
    what a cluster does to both cancels.

    Args:
        a: The sums that are taken off.
        b: The sums that they are taken off from.
        confidence: Nominal coverage of the interval.
    """
    if not (a.total("tokens") > 0 and b.total("tokens") > 0):
        return NO_CHANGE_KNOWN
    ours, theirs = _sides(a, b, "k1", paired=bool(a.groups.shared(b.groups)))
    return _change(ours, theirs, confidence)[0]


class _Side(NamedTuple):
    """The sums of one side over the clusters (or groups) of both, [clusters] each."""

    above: NDArray[np.float64]
    below: NDArray[np.float64]
    sizes: NDArray[np.float64]  # 0 where the side has no such cluster

    @property
    def mean(self) -> float:
        return float(self.above.sum() / self.below.sum())

    @property
    def magnitude(self) -> float:
        return float(np.abs(self.above).sum() / self.below.sum())

    @property
    def shares(self) -> NDArray[np.float64]:
        return self.sizes / self.sizes.sum()

    @property
    def residuals(self) -> NDArray[np.float64]:
        """What each cluster adds to the error of the mean, by its linearization."""
        clusters = np.count_nonzero(self.sizes)
        fitted = (self.above - self.mean * self.below) / self.below.sum()
        return np.sqrt(clusters / (clusters - 1)) * fitted

    def at(self, chosen: NDArray[np.bool_]) -> _Side:
        return _Side(*(values[chosen] for values in self))


def _sides(a: QuestionState, b: QuestionState, term: str, *, paired: bool) -> tuple[_Side, _Side]:
    """The sums of both sides over the same clusters; apart from each other where none is shared.

    Clusters that share groups then share them by chance, and what they share is no pair.
    """
    above, below = ratio_of(a.question, term)
    rows = [ROW[name] for name in (above, below, sizes_of(below))]
    if paired:
        _, ours, theirs = a.groups.beside(b.groups)
    else:
        ours, theirs = _end_to_end(a.groups, b.groups)
    return _Side(*ours[rows]), _Side(*theirs[rows])


def _end_to_end(a: Groups, b: Groups) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ours = np.pad(a.sums, ((0, 0), (0, b.sums.shape[1])))
    return ours, np.pad(b.sums, ((0, 0), (a.sums.shape[1], 0)))


def _change(a: _Side, b: _Side, confidence: float) -> tuple[Change, str | None]:
    """The difference of two means with its interval, and why there is none."""
    from scipy.special import stdtrit

    mean = b.mean - a.mean
    if not np.isfinite(mean):
        return NO_CHANGE_KNOWN, "the difference overflows"
    nothing = NO_CHANGE_KNOWN._replace(mean=mean)
    effective = kish(a.sizes), kish(b.sizes)
    for name, number in zip("AB", effective, strict=True):
        if number < FEWEST_EFFECTIVE:
            return nothing, f"{name}: {TOO_FEW}"
    squares = (b.residuals - a.residuals) ** 2
    error = float(np.sqrt(squares.sum()))
    if not np.isfinite(error):
        return nothing, "the error overflows"
    degrees = _degrees_of_freedom(squares, a, b, effective)
    reach = float(stdtrit(degrees, (1 + confidence) / 2)) * error
    return Change(mean, mean - reach, mean + reach, error, degrees), None


def _degrees_of_freedom(
    squares: NDArray[np.float64], a: _Side, b: _Side, effective: tuple[float, float]
) -> float:
    """Satterthwaite's (Σ s)² / Σ (s²/e), with the squares s of A alone, of B alone and of both."""
    in_a, in_b = a.sizes > 0, b.sizes > 0
    sizes = a.shares + b.shares
    of_a, of_b = (1 - 1 / number for number in effective)
    parts = ((in_a & ~in_b, of_a), (in_b & ~in_a, of_b), (in_a & in_b, min(of_a, of_b)))
    known = [
        (float(squares[part].sum()), kish(sizes[part]) * fitted)
        for part, fitted in parts
        if part.any()
    ]
    total = sum(spread for spread, _ in known)
    if not total > 0:  # nothing varies
        return min(effective) - 1
    return 1 / sum((spread / total) ** 2 / number for spread, number in known)


def kish(sizes: NDArray[np.float64]) -> float:
    """Kish's effective number of clusters of these sizes, (Σ n)² / Σ n².

    Example:
        >>> kish(np.array([2.0, 2.0, 0.0])), kish(np.array([6.0, 1.0, 1.0])) < 2
        (2.0, True)
    """
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def _verdict(change: Change, rounding: float) -> str:
    if change.low != change.low:
        return "unknown"
    if change.low <= 0 <= change.high or abs(change.mean) <= rounding:
        return "within-noise"
    return "rose" if change.mean > 0 else "fell"
