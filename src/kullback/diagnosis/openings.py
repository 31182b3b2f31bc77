"""Does the mask cover prompts? Tokens at the start that a role did not score."""

from __future__ import annotations

from collections import Counter

from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.estimation.opening_state import OpeningState
from kullback.estimation.summary import Summary

CODE = "mask-covers-prompt"
FEWEST_OPENED = 20  # sequences; below, chance can open them all
NEARLY_ALL = 0.95  # share of sequences that open, or end, unscored
SELDOM = 0.01  # unscored tokens elsewhere, per scored one; a sure policy has more
COMMONEST = 0.5  # share of openings with the same ids: above, they may be a format that is certain
DOUBTED = -0.1  # nats: other roles give such tokens less than this, on average


def opens_unscored(summary: Summary, role: str) -> bool:
    """Whether nearly all sequences begin with tokens that this role, alone, did not score.

    A policy may be certain of how it begins, and then its log-prob is 0. But not in nearly every
    sequence, of differing tokens, and hardly ever again; nor are the others then in doubt.
    """
    state = summary.openings[role]
    if not _opens(state) or not differ(state.kinds, state.opened):
        return False
    return bool(state.means) and max(state.means.values()) < DOUBTED


def _opens(state: OpeningState) -> bool:
    nearly = state.opened >= max(FEWEST_OPENED, NEARLY_ALL * state.sequences)
    return nearly and state.elsewhere < SELDOM * state.scored


def opens_blank(summary: Summary) -> bool:
    """Whether nearly all sequences begin with tokens that no role scored, of differing ids.

    All policies may be certain of a beginning, but then it is the same one.
    """
    states = [*summary.openings.values()]
    if len(states) < 2 or not all(map(_opens, states)):
        return False
    first, *others = states
    alike = all(state.tokens == first.tokens for state in others)
    nothing = all(one.total == 0 for state in states for one in state.others.values())
    return differ(first.kinds, first.opened) and alike and nothing


def differ(kinds: Counter[int | None], runs: int) -> bool:
    """Whether so many runs of tokens have differing ids, as far as ids are known."""
    return None not in kinds and max(kinds.values()) <= COMMONEST * runs


def diagnose_openings(summary: Summary) -> Diagnosis:
    """Openings of log-probs that are 0 or missing for one role, or for all of them."""
    if opens_blank(summary):
        finding = _blank(summary)
        return Diagnosis.failed(finding, "the dump", finding.claim)
    found = Diagnosis()
    for role, state in summary.openings.items():
        told = f"{state.opened} of {state.sequences} sequences begin with tokens it did not score"
        if opens_unscored(summary, role):
            found += Diagnosis.failed(_finding(summary, role, state), role, told)
        elif _opens(state):
            told += ": a prompt, or a beginning that is certain"
            found += Diagnosis.not_possible(CODE, role, told)
        else:
            found += Diagnosis.passed(CODE, role, told)
    return found


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


def _finding(summary: Summary, role: str, state: OpeningState) -> Finding:
    means = state.means
    other = max(means, key=lambda one: means[one])
    share = state.tokens / (state.tokens + state.scored)
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=(
            f"{state.opened} of {state.sequences} sequences begin, inside the mask, with tokens "
            f"whose log-prob is 0 or missing for {role} alone ({other} gives them "
            f"{means[other]:.3g} nats on average): {role} did not score them, so they are of the "
            "prompt, or lack a score that belongs there."
        ),
        numbers={"sequences": state.opened, "tokens": state.tokens, "share": share, "means": means},
        cost=f"{share:.1%} of all tokens: each adds all of the other role's log-prob to the sum, "
        "or only to the count.",
        advice="Let the mask begin at the first token that was sampled and scored; a role that "
        "cannot score the first token needs the token before it.",
        where=(str(state.first),),
    )
