"""Is every value in the mask a log-prob? Sentinels, gaps, padding, probabilities, infinities."""

from __future__ import annotations

from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.estimation.column_state import ColumnState
from kullback.estimation.summary import Summary

ROUNDING = 0.01  # nats above 0 that low precision can leave in an honest log-softmax


def holds_log_probs(state: ColumnState) -> bool:
    """Whether no value is above 0 by more than rounding; the log of a density may be."""
    return state.high <= ROUNDING or not state.discrete


def diagnose_columns(summary: Summary) -> Diagnosis:
    """Look at the values of every role, and at tails of zeros."""
    total = Diagnosis()
    for role, state in summary.columns.items():
        for detect in (_positive, _sentinel, _missing):
            total += detect(summary, role, state)
    return total + _infinite(summary) + _padding(summary)


def _of(summary: Summary, role: str) -> tuple[str, ...]:
    return tuple(str(question) for question in summary.questions if role in question.roles)


def _one(code: str, subject: str, finding: Finding | None, reason: str) -> Diagnosis:
    status = "passed" if finding is None else "failed"
    check = Check(code, subject, status, reason)
    return Diagnosis((finding,) if finding else (), (check,))


def _positive(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    code = "not-log-probs"
    reason = f"the largest value is {state.high:.3g}; {state.positive} of {state.tokens} above 0"
    if holds_log_probs(state):
        return _one(code, role, None, reason)
    if state.low >= 0 and state.high <= 1:
        what = f"The values of {role} lie between 0 and 1: they are probabilities."
        advice = "Take their logarithm when they are logged."
    elif state.low >= 0:
        what = f"All values of {role} are above 0: they look like −log p."
        advice = "Turn their sign when they are logged."
    else:
        what = f"{state.positive} values of {role} are above 0, the largest {state.high:.3g}."
        advice = "Look for unnormalized logits or a wrong column; a token has no density above 1."
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain",
        questions=_of(summary, role),
        claim=f"{what} A log-probability of a token is never above 0.",
        numbers={"positive": state.positive, "tokens": state.tokens, "largest": state.high},
        cost=f"No estimate that uses {role} means anything.",
        advice=advice,
        where=_places(state, "positive"),
    )
    return _one(code, role, finding, reason)


def _sentinel(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    code, reason = "sentinel-inside-mask", f"{state.sentinel} values of −9999"
    if not state.sentinel:
        return _one(code, role, None, reason)
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain",
        questions=_of(summary, role),
        claim=f"{state.sentinel} of {state.tokens} log-probs of {role} are −9999: the engine had "
        "none there, or clamped a −inf.",
        numbers={"sentinels": state.sentinel, "tokens": state.tokens},
        cost="They are left out and counted here. Averaged by a trainer, each adds thousands of "
        "nats to a sum of k1.",
        advice="Ask the engine for the sampled token's log-prob always, or mask these tokens.",
        where=_places(state, "sentinel"),
    )
    return _one(code, role, finding, reason)


def _missing(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    code, reason = "missing-values", f"{state.nan} values not logged"
    if not state.nan:
        return _one(code, role, None, reason)
    finding = Finding(
        code=code,
        severity="warning",
        certainty="certain",
        questions=_of(summary, role),
        claim=f"{state.nan} of {state.tokens} log-probs of {role} inside the mask are missing.",
        numbers={"missing": state.nan, "tokens": state.tokens},
        cost="They are left out and counted. If the gaps depend on what was sampled, the rest is "
        "a selected sample.",
        advice="Log them, or mask the tokens on purpose and say by which rule.",
        where=_places(state, "nan"),
    )
    return _one(code, role, finding, reason)


def _places(state: ColumnState, fault: str) -> tuple[str, ...]:
    return (str(state.first[fault]),) if fault in state.first else ()


def _infinite(summary: Summary) -> Diagnosis:
    total = Diagnosis()
    for question, state in summary.questions.items():
        reason = f"{state.infinite} tokens outside a support"
        finding = None
        if state.infinite:
            finding = Finding(
                code="infinite-ratio",
                severity="error",
                certainty="certain",
                questions=(str(question),),
                claim=f"At {state.infinite} tokens of {question} a policy that should give the "
                "token some probability gives none (log-prob −inf).",
                numbers={"infinite": state.infinite, "tokens": state.tokens},
                cost="The KL is infinite, and no finite estimate stands for it.",
                advice="Score with the same sampling mask on both sides, or with none; look for "
                "masked logits and for ids outside a vocabulary.",
                where=tuple(
                    place
                    for role in question.roles
                    for place in _places(summary.columns[role], "negative_infinite")
                ),
            )
        total += _one("infinite-ratio", str(question), finding, reason)
    return total


def _padding(summary: Summary) -> Diagnosis:
    """Rows padded to one width, whose padding of zeros is counted.

    A zero alone proves nothing (a token can be certain), nor does a tail of them: an honest policy
    may repeat itself with certainty. Padding ends at the common width, in more rows than one.
    """
    code, state = "mask-covers-padding", summary.sequences
    reason = f"{state.tailed} sequences end in log-probs of 0 under every role"
    if state.tailed < 2 or state.tail_shortest < state.longest:
        return _one(code, "the dump", None, reason)
    tokens = max(column.tokens for column in summary.columns.values())
    share = state.tail_tokens / tokens
    finding = Finding(
        code=code,
        severity="error",
        certainty="likely",
        questions=tuple(str(question) for question in summary.questions),
        claim=f"{state.tailed} of {state.sequences} sequences end in {state.tail_tokens} tokens "
        f"with log-prob 0 under every role, all at the width of {state.longest}: padding is "
        "counted as tokens.",
        numbers={"sequences": state.tailed, "tokens": state.tail_tokens, "share": share},
        cost=f"Each padded token adds 0 to the sum and 1 to the count: every token mean is "
        f"{share:.0%} too small.",
        advice="Take the mask from the lengths, not from the place of the end-of-text token.",
        where=tuple(str(place) for place in state.tailed_at),
    )
    return _one(code, "the dump", finding, reason)
