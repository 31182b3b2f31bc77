"""Is every value in the mask a log-prob? Sentinels, gaps, probabilities, infinities."""

from __future__ import annotations

import numpy as np

from kullback.columns import SENTINEL
from kullback.diagnosis.causes import together
from kullback.diagnosis.environment import unscored_inside
from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.diagnosis.openings import opens_unscored
from kullback.diagnosis.padding import diagnose_padding
from kullback.estimation.column_state import ColumnState
from kullback.estimation.summary import Summary

RELATED = 0.5  # correlation with the log-probs of a role that −log p has, at least
ROUNDING = 0.01  # nats above 0 that low precision can leave in an honest log-softmax

ONE_MASK = (
    "Score with the same sampling mask on both sides, or with none; look for masked logits and for "
    "ids outside a vocabulary."
)


def _in_bfloat16(value: float) -> float:
    """The number of bfloat16 that is nearest, or its least one."""
    bits = min(int(np.float32(value).view(np.uint32)) + 0x7FFF, 0xFF7FFFFF) & 0xFFFF0000
    return float(np.uint32(bits).view(np.float32))


# What programs write for −inf: the least number of a format, or minus a power of ten, and what
# float32 and bfloat16 make of it. exp of each is 0 in every format.
_POWERS = [-(10.0**power) for power in (5, 6, 7, 8, 9, 10, 12, 15, 20, 30)]
FILLS = frozenset(
    float(one)
    for value in (*_POWERS, float(np.finfo(np.float16).min), float(np.finfo(np.float32).min))
    for one in (value, np.float32(value), _in_bfloat16(value))
) | {float(np.finfo(np.float64).min)}


def holds_log_probs(state: ColumnState) -> bool:
    """Whether the values can be logarithms of probabilities, or of densities.

    A log-prob of a token is never above 0 by more than rounding. That of a density can be, but if
    all lie between 0 and 1, and not at one value, they are probabilities.
    """
    if state.high <= ROUNDING:
        return True
    return not state.discrete and not 0 <= state.low < state.high <= 1


def stands_for_infinity(state: ColumnState) -> bool:
    """Whether the smallest value is what programs write for −inf."""
    return state.lowest > 0 and state.low in FILLS


def diagnose_columns(summary: Summary) -> Diagnosis:
    """Look at the values of every role, at supports, and at runs of one constant."""
    total, padding = Diagnosis(), diagnose_padding(summary)
    detectors = [_positive, _sentinel, _missing]
    if not padding.findings:  # which may hold such a number, too
        detectors.append(_impossible)
    for detect in detectors:
        found = {role: detect(summary, role, state) for role, state in summary.columns.items()}
        total += together(found)
    return total + _infinite(summary) + padding


def _positive(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    code = "not-log-probs"
    reason = f"the largest value is {state.high:.3g}; {state.positive} of {state.tokens} above 0"
    if not state.tokens:
        return Diagnosis.not_possible(code, role, "no token is inside the mask")
    if holds_log_probs(state):
        if state.high > ROUNDING:
            reason += ": right for a density, wrong for a token; log tokens to tell"
            return Diagnosis.not_possible(code, role, reason)
        return Diagnosis.passed(code, role, reason)
    if state.low >= 0 and state.high <= 1:
        what = f"The values of {role} lie between 0 and 1: they are probabilities."
        advice = "Take their logarithm when they are logged."
    elif state.low >= 0 and _is_minus_log(summary, role, state):
        what = f"No value of {role} is below 0: they look like −log p."
        advice = "Turn their sign when they are logged."
    elif state.low >= 0:
        what = (
            f"No value of {role} is below 0, and they ({state.size / state.tokens:.3g} on average) "
            "do not go with the others' log-probs: they look like a ratio, a KL or another term."
        )
        advice = "Log the log-prob of the token itself; kullback makes every term of it."
    else:
        what = f"{state.positive} values of {role} are above 0, the largest {state.high:.3g}."
        advice = "Look for unnormalized logits or a wrong column."
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain" if state.discrete else "likely",
        questions=summary.asked_of(role),
        claim=f"{what} A log-probability of a token is never above 0.",
        numbers={"positive": state.positive, "tokens": state.tokens, "largest": state.high},
        cost="No estimate that uses them means anything.",
        advice=advice,
        where=_places(state, "positive"),
    )
    return Diagnosis.failed(finding, role, reason)


def _is_minus_log(summary: Summary, role: str, state: ColumnState) -> bool:
    """Whether the sizes go with those of the log-probs of another role, if there is one."""
    others = [one.size for other, one in summary.columns.items() if other != role]
    near = [
        abs(one.correlation)
        for question, one in summary.questions.items()
        if role in (question.sampler, question.q)
        and question.sampler != question.q
        and not np.isnan(one.correlation)
    ]
    alike = any(0.5 <= state.size / size <= 2 for size in others if size > 0)
    return not others or (alike and max(near, default=1.0) >= RELATED)


def _sentinel(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    code, reason = "sentinel-inside-mask", f"{state.sentinel} values of −9999"
    if not _elsewhere(summary, role, "sentinel"):
        return Diagnosis.passed(code, role, reason)
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain",
        questions=summary.asked_of(role),
        claim=f"{state.sentinel} of {state.tokens} log-probs of {role} are −9999: the engine had "
        "none there, or clamped a −inf.",
        numbers={"sentinels": state.sentinel, "tokens": state.tokens},
        cost="They are left out and counted here. A trainer that averages them in is off by "
        f"{-SENTINEL * state.sentinel / state.tokens:.3g} nats per token: every stop rule fires, "
        "or none does.",
        advice="Ask the engine for the sampled token's log-prob always, or mask these tokens.",
        where=_places(state, "sentinel"),
    )
    return Diagnosis.failed(finding, role, reason)


def _missing(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    code, reason = "missing-values", f"{state.nan} values not logged"
    if not _elsewhere(summary, role, "missing"):
        return Diagnosis.passed(code, role, reason)
    cut = ", all at the end of their sequence: what was scored there is shorter than the mask"
    cut = cut if state.nan_trailing == state.nan else ""
    finding = Finding(
        code=code,
        severity="warning",
        certainty="certain",
        questions=summary.asked_of(role),
        claim=f"{state.nan} of {state.tokens} log-probs of {role} in the mask are missing{cut}.",
        numbers={"missing": state.nan, "trailing": state.nan_trailing, "tokens": state.tokens},
        cost="They are left out and counted. If the gaps depend on what was sampled, the rest is "
        "a selected sample.",
        advice="Log them, or mask the tokens on purpose and say by which rule.",
        where=_places(state, "nan"),
    )
    return Diagnosis.failed(finding, role, reason)


def _impossible(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    """Numbers that stand for −inf, and are finite."""
    code = "infinite-ratio"
    if not stands_for_infinity(state):
        return Diagnosis()
    share = -state.low * state.lowest / state.tokens
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain",
        questions=summary.asked_of(role),
        claim=f"{state.lowest} of {state.tokens} log-probs of {role} are {state.low:g}, which "
        "stands for −inf: the token was masked, or its logit was below the format. A policy that "
        "gives a sampled token no probability has no finite KL.",
        numbers={"tokens": state.tokens, "impossible": state.lowest, "value": state.low},
        cost=f"They are counted as they stand, and move the mean of k1 by {share:.3g} nats per "
        "token; k3 and every ratio overflow, or are 0.",
        advice=f"{ONE_MASK} Log −inf as such.",
    )
    return Diagnosis.failed(finding, role, finding.claim)


def _elsewhere(summary: Summary, role: str, fault: str) -> int:
    """Such values that no other finding speaks of: those of a prompt, or of another's turn."""
    column, told = summary.columns[role], 0
    if unscored_inside(summary, role):
        told += int(getattr(summary.stretches[role], fault))
    if opens_unscored(summary, role):
        told += summary.openings[role].tokens
    return max({"missing": column.nan, "sentinel": column.sentinel}[fault] - told, 0)


def _places(state: ColumnState, fault: str) -> tuple[str, ...]:
    return (str(state.first[fault]),) if fault in state.first else ()


def _infinite(summary: Summary) -> Diagnosis:
    code = "infinite-ratio"
    counts = {str(question): state.infinite for question, state in summary.questions.items()}
    checks = tuple(
        Check(code, question, "failed" if count else "passed", f"{count} tokens outside a support")
        for question, count in counts.items()
    )
    hit = {question: count for question, count in counts.items() if count}
    if not hit:
        return Diagnosis((), checks)
    worst = max(hit, key=lambda question: hit[question])
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain",
        questions=tuple(hit),
        claim=f"At {hit[worst]} tokens of {worst} a policy that should give the token "
        "some probability gives none (a log-prob of −inf), or a log-prob is +inf.",
        numbers=hit,
        cost="The KL is infinite, and no finite estimate stands for it.",
        advice=ONE_MASK,
        where=tuple(
            place
            for state in summary.columns.values()
            for place in _places(state, "negative_infinite")
        ),
    )
    return Diagnosis((finding,), checks)
