"""Rollout and old are said to have equal weights: what lies between is no update's doing."""

from __future__ import annotations

import numpy as np

from kullback.diagnosis.finding import Diagnosis, Finding, decided
from kullback.diagnosis.rescored import CODE, noises
from kullback.diagnosis.soundness import unfit
from kullback.estimation.question_state import QuestionState
from kullback.estimation.summary import Summary
from kullback.question import Question

PAIR = Question("rollout", "old")
LARGEST = 0.3  # nats (root mean square); beyond, the two are hardly of equal weights
TURNED = 0.05  # how far the slope of one's log-probs on the other's may be from 1: a temperature
MOSTLY = 4.0  # times the noise that each side is known to have; beyond, there is something else
FEWEST = 200  # tokens; below, a direction is not looked for
LEAST_LACK = 0.005  # what the mean of old/rollout is below 1, at least, where that is told
ERRORS = 8.0  # and in standard errors
TELLS = 0.1  # share of the KL of an update that lies between the two already


def diagnose_engines(summary: Summary, found: Diagnosis) -> Diagnosis:
    """Tell what lies between two evaluations: noise in the KL of an update, or more than noise.

    Args:
        summary: The summary.
        found: What else is wrong; a fault of the two columns makes what lies between them.
    """
    state = summary.questions.get(PAIR)
    if state is None or not state.tokens or _is_explained(summary, found):
        return Diagnosis()
    if not state.distance > 0:
        return Diagnosis()
    ways = _one_way(state) + _turned(state) if state.tokens >= FEWEST else ""
    if ways or state.distance > LARGEST:
        return Diagnosis((_far_apart(state, ways),))
    shares = {
        question: state.mean("raw_k3") / k3
        for question, other in summary.questions.items()
        if {question.p, question.q} in ({"rollout", "current"}, {"old", "current"})
        and (k3 := other.mean("raw_k3")) > 0
    }
    named = {question: share for question, share in shares.items() if share >= TELLS}
    return Diagnosis((_finding(summary, state, named),) if named else ())


def _is_explained(summary: Summary, found: Diagnosis) -> bool:
    """Whether older weights, a fault of the columns or noise that is told explain it."""
    stale = any(age > 0 for age in summary.age.ages)
    spoiled = any(f.severity == "error" and str(PAIR) in f.questions for f in found.findings)
    if stale or spoiled or unfit(summary, PAIR):
        return True
    noise, state = noises(summary), summary.questions[PAIR]
    known = noise.get("rollout", 0.0) + noise.get("old", 0.0)
    return 0 < state.distance**2 <= MOSTLY * known


def _one_way(state: QuestionState) -> str:
    """What says that one side gives nearly all tokens less: noise of equal weights has mean r 1."""
    found = state.per_token(state.by_group("q_over_s"))
    error = found.standard_error  # NaN of a single prompt
    if not (error > 0 and found.mean < -max(LEAST_LACK, ERRORS * error)):
        return ""
    return f" The mean of old/rollout is {1 + found.mean:.4f}, where noise leaves it at 1."


def _turned(state: QuestionState) -> str:
    """What says that one side's log-probs rise faster than the other's.

    Noise of the engine makes the slope smaller, by its share of the variance; no noise is larger
    than what the line leaves.
    """
    slope = state.slope
    left = slope**2 * (state.correlation**-2 - 1) if state.correlation else np.nan
    if not (slope < 1 - TURNED - left or slope > 1 + TURNED):
        return ""
    return f" On those of rollout the log-probs of old have a slope of {slope:.3g}."


def _far_apart(state: QuestionState, ways: str) -> Finding:
    size, k1, k3 = state.distance, state.mean("raw_k1"), state.mean("raw_k3")
    return Finding(
        code=CODE,
        severity="warning",
        certainty="likely",
        questions=(str(PAIR),),
        claim=(
            f"rollout and old differ by {size:.2g} nats per token (root mean square), a k3 of "
            f"{k3:.3g}: {'not what' if ways else 'more than'} kernels or precision make of equal "
            f"weights.{ways} One side has another temperature, top-p or penalty in its log-probs, "
            "a floor or no normalizer, or other weights (older, quantized, another checkpoint), or "
            "dropout."
        ),
        numbers={"root_mean_square": size, "k1": k1, "k3": k3, "slope": state.slope},
        cost="No update made it, and it is in every ratio of the trainer's log-probs to the "
        f"engine's: in weights, in clipping, in the KL. {decided(max(k1, k3), 0.0)}".rstrip(),
        advice="Give both sides the temperature that sampled. Log top_ids and top_log_probs of "
        "both at a few prefixes, which tell a temperature from other weights, and versions and "
        "step, which tell staleness. If old is meant to have other weights, nothing is wrong.",
        where=tuple(str(token.place) for token in state.top_k3[:3]),
    )


def _finding(summary: Summary, state: QuestionState, named: dict[Question, float]) -> Finding:
    worst = max(named, key=lambda question: named[question])
    size, own = state.distance, state.mean("raw_k3")
    k3 = summary.questions[worst].mean("raw_k3")
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
        "side; a temperature near 1 that one side leaves out looks alike. If old has newer "
        "weights than the engine, log versions: then it is staleness. Set current against old, "
        "which the same program scored.",
        where=tuple(str(token.place) for token in state.top_k3[:3]),
    )
