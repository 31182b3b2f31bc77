"""Log-probs that were added up along their sequence, or cut off from below, before logging."""

from __future__ import annotations

from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.estimation.column_state import ColumnState
from kullback.estimation.summary import Summary

FEWEST = 100  # tokens with one before them in their sequence; below, chance may order them
FALLING = 0.3  # share of them below the one before, at least; a sure policy's stay where they are
RISING = 0.1  # share of another role's above the one before, at least
FEWEST_TIES = 5  # log-probs at the smallest value; below, chance may put them there
STEP = 0.5  # a floor that somebody wrote is a multiple of it
DEEPEST = -1.0  # nats; a small world has likely tokens at round values


def added_up(summary: Summary, role: str) -> bool:
    """Whether no log-prob of a role is above the one before it, as of sums along the sequence."""
    state = summary.columns[role]
    ordered = state.rises == 0 and state.falls >= max(FEWEST, FALLING * state.tokens)
    others = (one for other, one in summary.columns.items() if other != role)
    return ordered and any(one.rises > RISING * one.tokens for one in others)


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
    found = Diagnosis()
    for role, state in summary.columns.items():
        if added_up(summary, role):
            steps = state.rises + state.falls
            told = f"{state.rises} of {steps} log-probs are above the one before"
            found += Diagnosis.failed(_sums(summary, role, state), role, told)
        if floored(summary, role):
            told = f"{state.lowest} of {state.tokens} log-probs are {state.low:g}, none below"
            found += Diagnosis.failed(_floor(summary, role, state), role, told)
    return found


def _sums(summary: Summary, role: str, state: ColumnState) -> Finding:
    return Finding(
        code="not-log-probs",
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=f"Of {role} no log-prob is above the one before it in its sequence, and "
        f"{state.falls} are below: they are sums from the start of the sequence, not log-probs of "
        "tokens.",
        numbers={"rises": state.rises, "falls": state.falls, "low": state.low},
        cost="A mean over them counts the first tokens of a sequence most, and no estimate that "
        "uses them means anything.",
        advice="Take the differences along each sequence, or log the token's own log-prob.",
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
