"""Small steps, far away: the KL of each step beside the KL from the reference, over a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import NamedTuple

import numpy as np

from kullback.estimation.compare import NO_CHANGE_KNOWN, Change, difference
from kullback.estimation.estimate import Estimate, from_state
from kullback.estimation.policies import sampler_of
from kullback.estimation.question_state import QuestionState
from kullback.estimation.summary import Summary
from kullback.question import Question

AT_START = 0.1  # share of the last KL from the reference: below, the first step began there
BEYOND = 2.0  # times as far as the logged steps can have gone, by their KLs: others lie between


@dataclass(frozen=True, slots=True)
class RunStep:
    """A step of a run.

    Args:
        name: The step, or steps that share a cell.
        number: The first of them.
        steps: How many.
        tokens: Usable tokens.
        step: The KL of the step itself.
        total: The KL from the reference after it.
        added: By how much ``total`` differs from that of the step before, by k1, paired by prompt;
            NaN at the first.
    """

    name: str
    number: float
    steps: float
    tokens: int
    step: Estimate
    total: Estimate
    added: Change


@dataclass(frozen=True, slots=True)
class DriftByStep:
    """The KL of each step and the KL from the reference, step by step, in nats per token.

    Args:
        step_question: What is asked of a step.
        total_question: What is asked of the way so far.
        steps: In order.
        sum_of_steps: The KLs of the steps, added up. No KL: it is what a walk without a memory
            drifts on average, and less than what a straight way does.
        ratio: The last KL from the reference over that sum.
        ratio_low: Its least, by the ends of the intervals.
        ratio_high: Its most.
        straight: What the ratio is of steps in one direction, (Σ √KL)² / Σ KL, which is the
            number of steps if all are alike; 1 is that of a random walk.
        shape: ``straight``, ``walk`` or ``between``; ``unknown`` where ``reason`` says why.
        reason: Why the shape is not known, or nothing.
        by_position: Of summaries of one step each that are split by position: the difference of
            the last and the first KL from the reference at each.

    Example:
        >>> import kullback as kb, numpy as np
        >>> start = np.full((8, 50), -np.log(50))
        >>> rng = np.random.default_rng(0)
        >>> run = kb.worlds.small_steps(rng, start, steps=12, size=0.1, prompts=24)
        >>> found = drift_by_step(kb.summarize(kb.worlds.logged_by_step(rng, run), by=["step"]))
        >>> print(f"{found.ratio:.1f} of {found.straight:.1f}: {found.shape}")
        11.5 of 12.0: straight
        >>> found.first_above(0.1)
        '4'
    """

    step_question: Question
    total_question: Question
    steps: tuple[RunStep, ...]
    sum_of_steps: float
    ratio: float
    ratio_low: float
    ratio_high: float
    straight: float
    shape: str
    reason: str
    by_position: tuple[tuple[str, Change], ...] = ()

    @property
    def largest(self) -> float:
        """The upper end of the largest step: none is above it. NaN if a step has no interval."""
        highs = [one.step.high for one in self.steps]
        return math.nan if any(map(math.isnan, highs)) else max(highs)

    def first_above(self, limit: float) -> str | None:
        """The first step after which the KL from the reference is above a limit, low end and all.

        Args:
            limit: In nats per token.
        """
        return next((one.name for one in self.steps if one.total.low > limit), None)

    def most_added(self, few: int = 3) -> tuple[RunStep, ...]:
        """The steps that added most, of those whose interval leaves 0 out.

        Args:
            few: How many at most.
        """
        sure = [one for one in self.steps if one.added.low > 0]
        return tuple(sorted(sure, key=lambda one: -one.added.mean)[:few])


class _Pair(NamedTuple):
    """The sums of both questions at one step."""

    name: str
    number: float
    last: float
    step: QuestionState
    total: QuestionState


def drift_questions(summary: Summary) -> tuple[Question | None, Question | None]:
    """The question of a step and that of the way from the reference, if they were asked.

    Of a step it is KL(old‖current), else the sampler against ``current``, in which a mismatch of
    engine and trainer is counted too.
    """
    sampler = sampler_of(summary)
    asked = [q for q in summary.questions if q.level == "token_mean" and q.weight != "cumulative"]
    step = [q for p in ("old", sampler) for q in asked if (q.p, q.q) == (p, "current")]
    total = [q for q in asked if (q.p, q.q) == ("current", "reference")]
    return next(iter(step), None), next(iter(total), None)


@np.errstate(over="ignore", invalid="ignore")  # what overflows has no interval
def drift_by_step(
    summary: Summary | Sequence[Summary], *, confidence: float = 0.95
) -> DriftByStep | None:
    """Whether small steps have gone far: each step's KL beside the KL from the reference.

        straight: KL from the start ≈ (Σ √KL_t)² = n² KL;  a random walk: ≈ Σ KL_t = n KL

    KL is about the square of a distance, so it does not add up. A limit on KL(old‖current) bounds
    a step and not the way; a penalty, or a limit, on KL(current‖reference) bounds the way. Every
    estimate is by ``auto`` under the conditions of ``kb.estimate``; those of the way carry the
    importance weight of ``current``. Which of the two shapes it is, is told by the ratio of the
    last KL from the reference to the sum of the steps, if all steps are there and the first
    began at the reference: ``straight`` or ``walk`` if its whole interval is on one side of the
    geometric middle of 1 and ``straight``, else ``between``.

    Args:
        summary: What ``summarize`` made, with ``by=["step"]`` and the default questions of old,
            current and reference; or one summary for each step, in order.
        confidence: Nominal coverage of each interval.

    Returns:
        The drift, or None where either question was not asked, or there are fewer than two steps
        with numbers.

    Example:
        >>> import kullback as kb, numpy as np
        >>> start = np.full((8, 50), -np.log(50))
        >>> rng = np.random.default_rng(0)
        >>> run = kb.worlds.small_steps(
        ...     rng, start, steps=12, size=0.1, straight=False, prompts=24)
        >>> batches = kb.worlds.logged_by_step(rng, run)
        >>> found = drift_by_step([kb.summarize([batch]) for batch in batches])
        >>> print(f"{found.ratio:.1f} of {found.straight:.1f}: {found.shape}")
        1.0 of 12.0: walk
    """
    many = [summary] if isinstance(summary, Summary) else list(summary)
    if not many or any(one.questions.keys() != many[0].questions.keys() for one in many):
        return None
    step, total = drift_questions(many[0])
    if step is None or total is None:
        return None
    if isinstance(summary, Summary):
        pairs = list(_of_axis(summary, step, total))
    else:
        pairs = [
            _Pair(str(at), at, at, one.questions[step], one.questions[total])
            for at, one in enumerate(many)
        ]
    pairs = [pair for pair in pairs if pair.step.tokens and pair.total.tokens]
    if len(pairs) < 2:
        return None
    return _told(pairs, confidence, _positions(many[0], many[-1], total, confidence))


def _of_axis(summary: Summary, step: Question, total: Question) -> Iterator[_Pair]:
    """The cells of both questions along the axis; what is no number has no place in a run."""
    one, other = (summary.by.get(question, {}).get("step") for question in (step, total))
    if one is None or other is None:
        return
    for key in one.cells:
        if isinstance(key, float) and key in other.cells:
            name, low, high = one.named(key)
            yield _Pair(str(name), low, high, one.state(key), other.state(key))


def _told(
    pairs: Sequence[_Pair], confidence: float, by_position: tuple[tuple[str, Change], ...]
) -> DriftByStep:
    steps = []
    for before, pair in zip([None, *pairs], pairs, strict=False):
        one, total = (from_state(s, "auto", confidence) for s in (pair.step, pair.total))
        added = NO_CHANGE_KNOWN
        if before is not None:
            added = difference(before.total, pair.total, confidence)
        size = pair.last - pair.number + 1
        steps.append(RunStep(pair.name, pair.number, size, pair.step.tokens, one, total, added))
    means = [max(one.step.mean, 0.0) for one in steps]
    summed, roots = (
        sum(one.steps * size for one, size in zip(steps, sizes, strict=True))
        for sizes in (means, [math.sqrt(mean) for mean in means])
    )
    last = steps[-1].total
    low, high = (summed * (1 + sign * _relative_reach(pairs, confidence)) for sign in (-1, 1))
    straight = _over(roots**2, summed)
    ratios = _over(last.mean, summed), _over(last.low, high), _over(last.high, low)
    shape, reason = _shape(steps, pairs, ratios, straight)
    questions = pairs[0].step.question, pairs[0].total.question
    return DriftByStep(
        *questions, tuple(steps), summed, *ratios, straight, shape, reason, by_position
    )


def _relative_reach(pairs: Sequence[_Pair], confidence: float) -> float:
    """How far the sum of the steps may be off: as far, in relation, as the mean over all tokens.

    By Student's t of auto's own error, since where the steps are small in a whole run the end that
    reckons with unseen holes is 0 for want of the products that cells do not keep.
    """
    from scipy.special import stdtrit

    mean = from_state(reduce(add, [pair.step for pair in pairs]), "auto", confidence)
    if not mean.effective_clusters > 1:
        return math.nan
    reach = float(stdtrit(mean.effective_clusters - 1, (1 + confidence) / 2))
    return _over(reach * mean.standard_error, mean.mean)


def _over(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan


def _shape(
    steps: Sequence[RunStep],
    pairs: Sequence[_Pair],
    ratios: tuple[float, float, float],
    straight: float,
) -> tuple[str, str]:
    first, last = steps[0], steps[-1]
    _, low, high = ratios
    if math.isnan(low) or math.isnan(high):
        return "unknown", "how sure the sum of the steps is cannot be told"
    if any(b.number != a.last + 1 for a, b in pairwise(pairs)):
        return "unknown", "not every step is there"
    if first.total.mean - first.steps * first.step.mean > AT_START * last.total.mean:
        return "unknown", "the first step that is there did not begin at the reference"
    if low > BEYOND * straight:
        return "unknown", "these steps alone cannot have gone so far: others lie between them"
    middle = math.sqrt(straight)
    if low > middle:
        return "straight", ""
    return ("walk" if high < middle else "between"), ""


def _positions(
    first: Summary, last: Summary, question: Question, confidence: float
) -> tuple[tuple[str, Change], ...]:
    """Where the KL from the reference has grown, of two summaries that are split by position."""
    one, other = (s.by.get(question, {}).get("position") for s in (first, last))
    if one is None or other is None or first is last:
        return ()
    return tuple(
        (str(one.named(key)[0]), difference(one.state(key), other.state(key), confidence))
        for key in one.cells
        if key in other.cells
    )
