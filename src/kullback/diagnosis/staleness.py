"""Were older weights at work? What the logged versions say of the tokens, sequence by sequence."""

from __future__ import annotations

from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.estimation.age_state import AgeState
from kullback.estimation.summary import Summary

CODE = "stale"
TRAINER = ("old", "current", "student")  # roles whose weights are newer, if the sampler's are old


def diagnose_staleness(summary: Summary) -> Diagnosis:
    """Say how old the sampler's weights are; nobody is accused, since the log says so itself."""
    state = summary.age
    told = _told(state)
    if not (state.ages or state.versioned):
        reason = "no version of the weights is logged: log versions (per token) and step"
        return Diagnosis.not_possible(CODE, "the dump", reason)
    old = sum(count for age, count in state.ages.items() if age > 0)
    if state.early:
        reason = (
            f"{state.early} tokens have a version above their step, so the two count differently: "
            "log both by one count"
        )
        unknown = Diagnosis.not_possible(CODE, "the dump", reason)
        if state.several:
            return Diagnosis((_finding(summary, state, told),)) + unknown
        return unknown
    if not (old or state.several):
        return Diagnosis.passed(CODE, "the dump", told)
    return Diagnosis.failed(_finding(summary, state, told), "the dump", told)


def _told(state: AgeState) -> str:
    """The ages and the mixed sequences, in a clause each."""
    said = []
    count = state.ages.total()
    if count and not state.early:
        old = sum(n for age, n in state.ages.items() if age > 0)
        said.append(
            f"{old} of {count} tokens were sampled by weights older than their step, by "
            f"{_mean(state):.3g} versions on average and {max(state.ages)} at most"
            if old
            else f"all {count} tokens were sampled by the weights of their step"
        )
    if state.several:
        said.append(
            f"{state.several} of {state.sequences} sequences were sampled by several versions, up "
            f"to {state.span} apart"
        )
    return "; ".join(said) or f"each of {state.sequences} sequences was sampled by one version"


def _mean(state: AgeState) -> float:
    return sum(age * count for age, count in state.ages.items()) / state.ages.total()


def _finding(summary: Summary, state: AgeState, told: str) -> Finding:
    touched = [
        question
        for question in summary.questions
        if question.sampler == "rollout" and not {question.p, question.q}.isdisjoint(TRAINER)
    ]
    same = len(state.ages) == 1 and not state.several and not state.early
    counting = (
        f" It is {next(iter(state.ages))} everywhere: that may also be how the two are counted."
        if same
        else ""
    )
    versions = (
        " A sequence of several versions was sampled by no single policy; what it was sampled by "
        "is what rollout logged, token by token."
        if state.several
        else ""
    )
    return Finding(
        code=CODE,
        severity="note",
        certainty="certain",
        questions=tuple(map(str, touched)),
        claim=f"{told[0].upper()}{told[1:]}.{counting}",
        numbers={
            "ages": {str(age): count for age, count in sorted(state.ages.items())[:20]},
            "several": state.several,
            "sequences": state.sequences,
            "span": state.span,
        },
        cost="KL of rollout and the trainer's policy holds the drift of these versions besides "
        f"what the two engines differ by, and the importance weights are wider by it.{versions}",
        advice="Split by staleness (--by staleness): age 0 shows the engines alone. Weigh by the "
        "log-probs that rollout logged while it drew, never by recomputed ones.",
        where=(str(state.first),) if state.first else (),
    )
