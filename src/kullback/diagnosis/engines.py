"""Rollout and old are said to have equal weights: what lies between is no update's doing."""

from __future__ import annotations

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
    """Tell what lies between two evaluations: noise in the KL of an update, or more than noise.

    Args:
        summary: The summary.
        found: What else is wrong; a fault of the two columns makes what lies between them.
    """
    state = summary.questions.get(PAIR)
    if state is None or not state.tokens or _is_explained(summary, found):
        return Diagnosis()
    if state.distance > LARGEST:
        return Diagnosis((_far_apart(state),))
    if not state.distance > 0 or abs(state.slope - 1) > TURNED:
        return Diagnosis()
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
    noisy = not {"rollout", "old"}.isdisjoint(noises(summary))
    return stale or spoiled or noisy or bool(unfit(summary, PAIR))


def _far_apart(state: QuestionState) -> Finding:
    size, k1, k3 = state.distance, state.mean("raw_k1"), state.mean("raw_k3")
    return Finding(
        code=CODE,
        severity="warning",
        certainty="likely",
        questions=(str(PAIR),),
        claim=(
            f"rollout and old differ by {size:.2g} nats per token (root mean square), a k3 of "
            f"{k3:.3g}: more than kernels or precision make of equal weights. One side has "
            "another temperature, top-p or penalty in its log-probs, or other weights (older, "
            "quantized, another checkpoint), or dropout."
        ),
        numbers={"root_mean_square": size, "k1": k1, "k3": k3, "slope": state.slope},
        cost="No update made it, and it is in every ratio of the trainer's log-probs to the "
        f"engine's: in weights, in clipping, in the KL. {decided(k3, 0.0)}".rstrip(),
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
        "side. If old has newer weights than the engine, log versions: then it is staleness. Set "
        "current against old, which the same program scored.",
        where=tuple(str(token.place) for token in state.top_k3[:3]),
    )
