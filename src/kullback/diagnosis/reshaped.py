"""Log-probs that were summed, averaged or cut off from below before they were logged."""

from __future__ import annotations

from math import log

from kullback.diagnosis.causes import together
from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.estimation.column_state import ColumnState
from kullback.estimation.summary import Summary

FEWEST = 100  # tokens with one before them in their sequence; below, chance may order them
FALLING = 0.3  # share of them below the one before, at least; a sure policy's stay where they are
RISING = 0.1  # share of another role's above the one before, and as many below, at least
MOST = 12.5  # nats, log of 270,000 ids: no policy finds its own draws less likely on average
FEWEST_TIES = 5  # log-probs at the smallest value; below, chance may put them there
STEP = 0.5  # a floor that somebody wrote is a multiple of it, or the log of a power of ten
ROUNDED = 1e-6  # relative; what float32 makes of the log of a power of ten
LARGEST = -1.5  # exponent of such a power: a small world has probabilities of a tenth
DEEPEST = -1.0  # nats; a small world has likely tokens at round values


def added_up(summary: Summary, role: str) -> bool:
    """Whether log-probs of a role only fall along each sequence, or only rise, as sums do."""
    state = summary.columns[role]
    if not _one_way(state, FALLING):
        return False
    others = [one for other, one in summary.columns.items() if other != role]
    if any(min(one.rises, one.falls) > RISING * one.tokens for one in others):
        return True
    return all(_one_way(one, FALLING) and one.size > MOST * one.tokens for one in (state, *others))


def _one_way(state: ColumnState, share: float) -> bool:
    moved = max(state.rises, state.falls)
    return min(state.rises, state.falls) == 0 and moved >= max(FEWEST, share * state.tokens)


def averaged(summary: Summary, role: str) -> bool:
    """Whether each sequence has one value throughout, and not all the same: its mean, or sum."""
    state, asked = summary.columns[role], next(iter(summary.questions.values()))
    still = state.rises == state.falls == 0 and state.low < state.high
    if not still or state.tokens - asked.sequences < FEWEST:
        return False
    others = [one for other, one in summary.columns.items() if other != role]
    return any(one.total != state.total for one in others)


def floored(summary: Summary, role: str) -> bool:
    """Whether log-probs of a role pile up at a round smallest value that another role goes below.

    Of such a role exp(log q) adds up to more than 1, so that nothing is told of who sampled.
    """
    state = summary.columns[role]
    piled = state.lowest >= FEWEST_TIES and state.low <= DEEPEST
    if not piled or state.low == state.high or not _is_chosen(state.low):
        return False
    others = (one for other, one in summary.columns.items() if other != role)
    return any(one.low < state.low - STEP for one in others)


def _is_chosen(low: float) -> bool:
    """Whether a floor is a number that somebody writes, as a log-prob or as a probability."""
    power = low / log(10)
    return low % STEP == 0 or (power < LARGEST and abs(power - round(power)) <= -ROUNDED * power)


def diagnose_reshaped(summary: Summary) -> Diagnosis:
    """Sums in place of log-probs, and a floor under them."""
    sums: dict[str, Diagnosis] = {}
    floors = Diagnosis()
    for role, state in summary.columns.items():
        if added_up(summary, role) or averaged(summary, role):
            steps = state.rises + state.falls
            told = f"{state.rises} of {steps} log-probs are above the one before"
            sums[role] = Diagnosis.failed(_sums(summary, role, state), role, told)
        if floored(summary, role):
            told = f"{state.lowest} of {state.tokens} log-probs are {state.low:g}, none below"
            floors += Diagnosis.failed(_floor(summary, role, state), role, told)
    return together(sums) + floors


def _sums(summary: Summary, role: str, state: ColumnState) -> Finding:
    return Finding(
        code="not-log-probs",
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=_shape(role, state),
        numbers={"rises": state.rises, "falls": state.falls, "low": state.low},
        cost="A mean over them counts some tokens of a sequence more than others, or each as all "
        "of them, and no estimate that uses them means anything.",
        advice="Log the token's own log-prob: before the sum, the mean or the cumulative sum.",
    )


def _shape(role: str, state: ColumnState) -> str:
    if not state.rises and not state.falls:
        return (
            f"{role} has one value at all tokens of a sequence, and another one in other "
            "sequences: a mean or a sum over the sequence, not log-probs of tokens."
        )
    way, other, count, end = "above", "below", state.falls, "start"
    if state.rises:
        way, other, count, end = "below", "above", state.rises, "end"
    return (
        f"Of {role} no log-prob is {way} the one before it in its sequence, and {count} are "
        f"{other}: they are sums from the {end} of the sequence, not log-probs of tokens."
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
