"""Log-probs that were added up along their sequence, or cut off from below, before logging."""

from __future__ import annotations

from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.estimation.column_state import ColumnState
from kullback.estimation.summary import Summary

FEWEST = 100  # tokens with one before them in their sequence; below, chance may order them
FALLING = 0.3  # share of them below the one before, at least; a sure policy's stay where they are
RISING = 0.1  # share of another role's above the one before, at least
FEWEST_TIES = 5  # log-probs at the smallest value; below, chance may put them there
STEP = 0.5  # a floor that somebody wrote is a multiple of it
DEEPEST = -1.0  # nats; a small world has likely tokens at round values


def added_up(summary: Summary, role: str) -> str:
    """Which sums the log-probs of a role are, if they are any.

    None above the one before it are sums from the start of the sequence, none below it sums to the
    end; where all of a sequence are one, they are that of all of it, or its mean.
    """
    state = summary.columns[role]
    others = [one for other, one in summary.columns.items() if other != role]
    if not any(min(one.rises, one.falls) > RISING * one.tokens for one in others):
        return ""
    many = max(FEWEST, FALLING * state.tokens)
    if state.rises == 0 and state.falls >= many:
        return "from the start of the sequence"
    if state.falls == 0 and state.rises >= many:
        return "to the end of the sequence"
    alike = state.rises == state.falls == 0 and state.low < state.high
    return "of the whole sequence, or its mean" if alike else ""


def floored(summary: Summary, role: str) -> bool:
    """Whether log-probs of a role pile up at a round smallest value that another role goes below.

    Of such a role exp(log q) adds up to more than 1, so that nothing is told of who sampled.
    """
    state = summary.columns[role]
    piled = state.lowest >= FEWEST_TIES and state.low <= DEEPEST
    if not piled or state.low % STEP != 0 or state.low == state.high:
        return False
    others = (one for other, one in summary.columns.items() if other != role)
    return any(one.low < state.low - STEP for one in others)


def diagnose_reshaped(summary: Summary) -> Diagnosis:
    """Sums in place of log-probs, and a floor under them."""
    findings, checks = [], []
    for role, state in summary.columns.items():
        told = f"{state.rises} of {state.rises + state.falls} log-probs are above the one before"
        if sums := added_up(summary, role):
            findings.append(_sums(summary, role, sums))
            checks.append(Check("not-log-probs", role, "failed", told))
        if floored(summary, role):
            findings.append(_floor(summary, role, state))
            told = f"{state.lowest} of {state.tokens} log-probs are {state.low:g}, none below"
            checks.append(Check("clamp-active", role, "failed", told))
    return Diagnosis(tuple(findings), tuple(checks))


def _sums(summary: Summary, role: str, sums: str) -> Finding:
    state = summary.columns[role]
    return Finding(
        code="not-log-probs",
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=f"Of {role} {state.rises} log-probs are above the one before them in their sequence "
        f"and {state.falls} are below, where another role rises and falls: they are sums {sums}, "
        "not log-probs of tokens.",
        numbers={"rises": state.rises, "falls": state.falls, "low": state.low},
        cost="A mean over them counts some tokens of a sequence many times, and no estimate that "
        "uses them means anything.",
        advice="Log the token's own log-prob. Of sums along a sequence the differences are these; "
        "from one number per sequence they cannot be had.",
    )


def _floor(summary: Summary, role: str, state: ColumnState) -> Finding:
    share = state.lowest / state.tokens
    return Finding(
        code="clamp-active",
        severity="warning",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=f"{state.lowest} of {state.tokens} log-probs of {role} are {state.low:g}, none is "
        f"below, and other roles go lower: {role} was cut off at {state.low:g} before it was "
        "logged.",
        numbers={"floor": state.low, "tokens": state.lowest, "share": share},
        cost=f"{share:.1%} of the tokens are less unlikely than {role} finds them, and just these "
        "carry the KL: k1 against it is too low and may be negative with an honest sampler.",
        advice="Log the log-probs as they are, and clamp, if at all, in the loss alone.",
    )
