"""Rollout and old are said to have equal weights: what lies between is no update's doing."""

from __future__ import annotations

import math

from kullback.diagnosis.finding import Diagnosis, Finding, decided
from kullback.diagnosis.rescored import CODE, noises
from kullback.diagnosis.sampler_tests import unfit
from kullback.estimation.question_state import QuestionState
from kullback.estimation.summary import Summary
from kullback.question import Question

PAIR = Question("rollout", "old")
LARGEST = 0.3  # nats (root mean square); beyond, the two are hardly of equal weights
TURNED = 0.05  # how far the slope of one's log-probs on the other's may be from 1: a temperature
TELLS = 0.1  # share of the KL of an update that lies between the two already


def diagnose_engines(summary: Summary, found: Diagnosis) -> Diagnosis:
    """Tell of the noise between two evaluations where it is part of the KL of an update.

    Args:
        summary: The summary.
        found: What else is wrong; a fault of the two columns makes what lies between them.
    """
    state = summary.questions.get(PAIR)
    if state is None or not _of_equal_weights(summary, state, found):
        return Diagnosis()
    own = state.total("raw_k3") / state.tokens
    shares = {
        question: own / k3
        for question, other in summary.questions.items()
        if {question.p, question.q} in ({"rollout", "current"}, {"old", "current"})
        and other.tokens
        and (k3 := other.total("raw_k3") / other.tokens) > 0
    }
    named = {question: share for question, share in shares.items() if share >= TELLS}
    if not named or not {"rollout", "old"}.isdisjoint(noises(summary)):
        return Diagnosis()
    return Diagnosis((_finding(summary, state, own, named),))


def _of_equal_weights(summary: Summary, state: QuestionState, found: Diagnosis) -> bool:
    """Whether nothing speaks for other weights, a temperature or a fault of the columns."""
    stale = any(age > 0 for age in summary.age.ages)
    spoiled = any(f.severity == "error" and str(PAIR) in f.questions for f in found.findings)
    if stale or spoiled or unfit(summary, PAIR) or not state.tokens:
        return False
    count, s, q, ss, _, sq = state.association
    spread = count * ss - s * s
    slope = (count * sq - s * q) / spread if spread > 0 else math.nan
    size = math.sqrt(2 * state.total("raw_k2") / state.tokens)
    return abs(slope - 1) <= TURNED and 0 < size <= LARGEST


def _finding(
    summary: Summary, state: QuestionState, own: float, named: dict[Question, float]
) -> Finding:
    worst = max(named, key=lambda question: named[question])
    size = math.sqrt(2 * state.total("raw_k2") / state.tokens)
    other = summary.questions[worst]
    k3 = other.total("raw_k3") / other.tokens
    return Finding(
        code=CODE,
        severity="note",
        certainty="likely",
        questions=tuple(map(str, named)),
        claim=(
            f"If rollout and old are evaluations of equal weights, they differ by noise: by "
            f"{size:.2g} nats per token (root mean square), a k3 of {own:.3g}, before any update. "
            f"{worst} is {k3:.3g} by k3, and no update made up to {min(named[worst], 1.0):.0%} of "
            "that."
        ),
        numbers={
            "root_mean_square": size,
            "k3": own,
            "shares": {str(question): share for question, share in named.items()},
        },
        cost=f"A KL as small as {own:.2g} cannot be told from that noise. "
        f"{decided(k3, max(k3 - own, 0.0))}".rstrip(),
        advice="Look for dropout in the scoring pass, another precision or other kernels on one "
        "side. If old has newer weights than the engine, log versions: then it is staleness. Set "
        "current against old, which the same program scored.",
        where=tuple(str(token.place) for token in state.top_k3[:3]),
    )
