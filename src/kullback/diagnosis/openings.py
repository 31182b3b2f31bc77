"""Does the mask cover prompts? Tokens at the start that a role did not score."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kullback.diagnosis.doubt import doubted_by_a_copy, doubting
from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.estimation.opening_state import OpeningState
from kullback.estimation.stretch_state import SHORTEST
from kullback.estimation.summary import Summary

CODE = "mask-covers-prompt"
FEWEST_OPENED = 20  # sequences; below, chance can open them all
NEARLY_ALL = 0.95  # share of sequences that open, or end, unscored
SELDOM = 0.01  # unscored tokens elsewhere, per scored one; a sure policy has more
COMMONEST = 0.5  # share of openings with the same ids: above, they may be a format that is certain


def opens_unscored(summary: Summary, role: str) -> bool:
    """Whether sequences begin with tokens that this role did not score, and others doubted.

    A policy may be certain of how it begins, and then its log-prob is 0. But not in nearly every
    sequence, of differing tokens, and hardly ever again; nor of what another copy of the same
    weights doubts.
    """
    state = summary.openings[role]
    means = doubting(state)
    if not _many(state) or not means:
        return False
    if doubted_by_a_copy(role, means):
        return True
    return _nearly_all(state) and differ(state.kinds, state.opened)


def _many(state: OpeningState) -> bool:
    return state.opened >= FEWEST_OPENED and state.elsewhere < SELDOM * state.scored


def _nearly_all(state: OpeningState) -> bool:
    return state.opened >= NEARLY_ALL * state.sequences


def opens_blank(summary: Summary) -> bool:
    """Whether sequences begin with tokens that no role scored, of differing ids.

    All policies may be certain of a beginning, but then it is the same one; or of a token here and
    there, but then not of several.
    """
    states = [*summary.openings.values()]
    if len(states) < 2 or not all(map(_many, states)):
        return False
    first, *others = states
    alike = all(state.tokens == first.tokens for state in others)
    nothing = all(one.total == 0 for state in states for one in state.others.values())
    enough = _nearly_all(first) or first.tokens >= SHORTEST * first.opened
    return enough and differ(first.kinds, first.opened) and alike and nothing


def differ(kinds: Counter[int | None], runs: int) -> bool:
    """Whether so many runs of tokens have differing ids, as far as ids are known."""
    return None not in kinds and max(kinds.values()) <= COMMONEST * runs


def diagnose_openings(summary: Summary) -> Diagnosis:
    """Openings of log-probs that are 0 or missing for one role, or for all of them."""
    if opens_blank(summary):
        finding = _blank(summary)
        return Diagnosis.failed(finding, "the dump", finding.claim)
    findings: dict[tuple[int, int], Finding] = {}
    found = Diagnosis()
    for role, state in summary.openings.items():
        told = f"{state.opened} of {state.sequences} sequences begin with tokens it did not score"
        if opens_unscored(summary, role):
            same = findings.get((state.opened, state.tokens))
            one = _also(same, role) if same else _finding(summary, role, state)
            findings[state.opened, state.tokens] = one
            found += Diagnosis((), (Check(CODE, role, "failed", told),))
        elif _many(state) and _nearly_all(state):
            told += ": a prompt, or a beginning that is certain"
            found += Diagnosis.not_possible(CODE, role, told)
        else:
            found += Diagnosis.passed(CODE, role, told)
    return Diagnosis(tuple(findings.values())) + found


def _blank(summary: Summary) -> Finding:
    state = next(iter(summary.openings.values()))
    share = state.tokens / (state.tokens + state.scored)
    each = state.tokens / state.opened
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=tuple(map(str, summary.questions)),
        claim=(
            f"{state.opened} of {state.sequences} sequences begin, inside the mask, with tokens "
            f"whose log-prob is 0 or missing for every role, {each:.3g} each on average and of "
            "differing ids, and hardly any other token has none: they are of the prompt, and "
            "nobody scored them."
        ),
        numbers={"sequences": state.opened, "tokens": state.tokens, "share": share},
        cost=f"{share:.1%} of all tokens: each adds nothing to the sum and one to the count, so "
        f"that every mean per token is {1 - share:.3g} times what it is over the answer.",
        advice="Let the mask begin at the first token that was sampled and scored.",
        where=(str(state.first),),
    )


def _also(finding: Finding, role: str) -> Finding:
    """The same finding, of one more role."""
    return replace(finding, claim=f"{finding.claim} Nor did {role}.")


def _or_padding(state: OpeningState) -> str:
    """What else they may be where no id tells."""
    return " (or padding, ids would tell)" if None in state.kinds else ""


def _finding(summary: Summary, role: str, state: OpeningState) -> Finding:
    means = doubting(state)
    other = max(means, key=lambda one: means[one])
    share = state.tokens / (state.tokens + state.scored)
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=(
            f"{state.opened} of {state.sequences} sequences begin, inside the mask, with tokens "
            f"whose log-prob is 0 or missing for {role} ({other} gives them "
            f"{means[other]:.3g} nats on average): {role} did not score them, so they are of the "
            f"prompt{_or_padding(state)}, or lack a score that belongs there."
        ),
        numbers={"sequences": state.opened, "tokens": state.tokens, "share": share, "means": means},
        cost=f"{share:.1%} of all tokens: each adds all of the other role's log-prob to the sum, "
        "or only to the count.",
        advice="Let the mask begin at the first token that was sampled and scored; a role that "
        "cannot score the first token needs the token before it.",
        where=(str(state.first),),
    )
