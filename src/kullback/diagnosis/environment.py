"""Does the mask cover another's turn? Stretches within sequences that a role did not score."""

from __future__ import annotations

from kullback.diagnosis.doubt import doubted_by_a_copy, doubting
from kullback.diagnosis.finding import Diagnosis, Finding, without
from kullback.diagnosis.openings import SELDOM, differ
from kullback.estimation.stretch_state import SHORTEST, StretchState
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "mask-covers-environment"
FEWEST_STRETCHES = 10  # below, chance can make them all of a sure policy's tokens
FEWEST_SEQUENCES = 3  # that have one


def unscored_inside(summary: Summary, role: str) -> bool:
    """Whether sequences hold stretches that this role did not score, and others doubted.

    A policy may be certain of some tokens in a row, and then its log-probs are 0. But not of ones
    that differ each time, while it is hardly ever certain of a single one; nor of ones that another
    copy of the same weights doubts.
    """
    state = summary.stretches[role]
    means = doubting(state)
    if not _many(state) or not means:
        return False
    if doubted_by_a_copy(role, means):
        return True
    return differ(state.kinds, state.runs)


def blank_inside(summary: Summary) -> bool:
    """Whether sequences hold stretches that no role scored, of ids that differ."""
    states = [*summary.stretches.values()]
    if len(states) < 2 or not all(map(_many, states)):
        return False
    first, *others = states
    alike = all(one.tokens == first.tokens for one in others)
    seen = any(role.count for one in states for role in one.others.values())
    return differ(first.kinds, first.runs) and alike and not seen


def _many(state: StretchState) -> bool:
    enough = state.runs >= FEWEST_STRETCHES and state.stretched >= FEWEST_SEQUENCES
    return enough and state.elsewhere < SELDOM * state.scored


def diagnose_environment(summary: Summary) -> Diagnosis:
    """Stretches of log-probs that are 0, missing or one whole number, which others scored."""
    if blank_inside(summary):
        finding = _blank(summary)
        return Diagnosis.failed(finding, "the dump", finding.claim)
    found = Diagnosis()
    holes = (
        f"; {summary.masks.holed} of {summary.masks.sequences} sequences have masked tokens "
        f"between counted ones, {summary.masks.holes} in all"
        if summary.masks.holed
        else ""
    )
    for role, state in summary.stretches.items():
        told = f"{state.runs} stretches of {SHORTEST} tokens or more were not scored{holes}"
        if unscored_inside(summary, role):
            found += Diagnosis.failed(_finding(summary, role, state), role, told)
        elif state.runs and _many(state):
            told += ": another's turn, or tokens that are certain"
            found += Diagnosis.not_possible(CODE, role, told)
        else:
            found += Diagnosis.passed(CODE, role, told)
    return found


def _blank(summary: Summary) -> Finding:
    state = next(iter(summary.stretches.values()))
    share = state.tokens / (state.tokens + state.scored)
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=tuple(map(str, summary.questions)),
        claim=(
            f"In {state.stretched} of {state.sequences} sequences {state.tokens} tokens, "
            f"{state.runs} stretches between scored ones, are counted whose log-prob is 0 or "
            "missing for every role, of differing ids, and hardly any other token has none: nobody "
            "scored them. They are of a tool, an environment or another turn."
        ),
        numbers={
            "sequences": state.stretched,
            "stretches": state.runs,
            "tokens": state.tokens,
            "share": share,
        },
        cost=f"{share:.1%} of all tokens: each adds nothing to the sum and one to the count, so "
        f"that every mean per token is {1 - share:.3g} times what it is over the sampled ones.",
        advice="Take them out of the mask, in the estimate, in the loss and in the returns; they "
        "stay in the context.",
        where=(str(state.first),),
    )


def _finding(summary: Summary, role: str, state: StretchState) -> Finding:
    means = doubting(state)
    other = max(means, key=lambda one: means[one])
    share = state.tokens / (state.tokens + state.scored)
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=(
            f"In {state.stretched} of {state.sequences} sequences {state.tokens} tokens, "
            f"{state.runs} stretches between scored ones, are counted whose log-prob is a constant "
            f"or missing for {role} ({other} gives them {means[other]:.3g} nats on average): "
            f"{role} did not sample them. They are of a tool, an environment or another turn."
        ),
        numbers={
            "sequences": state.stretched,
            "stretches": state.runs,
            "tokens": state.tokens,
            "share": share,
            "means": means,
        },
        cost=f"{share:.1%} of all tokens, which no policy chose. {_cost(summary, role, state)}",
        advice="Take them out of the mask, in the estimate, in the loss and in the returns; they "
        "stay in the context.",
        where=(str(state.first),),
    )


def _cost(summary: Summary, role: str, state: StretchState) -> str:
    """What they do to k1 of the first question that takes the role as p."""
    for other, theirs in state.others.items():
        whole = summary.questions.get(Question(role, other))
        known = not state.missing and not state.sentinel and theirs.count == state.tokens
        if whole is not None and known and whole.tokens > theirs.count:
            lost = state.own - theirs.total
            rest = (whole.total("k1") - lost) / (whole.tokens - theirs.count)
            return without(whole.question, whole.mean("k1"), rest)
    return "Each adds all of another role's log-prob to the sum, or only one to the count."
