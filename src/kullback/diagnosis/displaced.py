"""Do log-probs stand some tokens off, with zeros where none are left? Then they fit nobody."""

from __future__ import annotations

from kullback.diagnosis.alignment import UNRELATED, shifted_roles
from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.diagnosis.openings import opens_unscored
from kullback.diagnosis.unscored import closes_unscored
from kullback.estimation.summary import Summary

CODE = "misaligned"


def diagnose_displaced(summary: Summary) -> Diagnosis:
    """Zeros at one end of nearly all sequences, and no relation to other roles behind them.

    Of a prompt that is counted, what stands behind it goes with the log-probs of the other roles;
    of a column that was moved by some tokens and filled up with zeros nothing does.
    """
    findings, checks = [], []
    for role in summary.columns:
        if displaced(summary, role):
            findings.append(_finding(summary, role))
            checks.append(Check(CODE, role, "failed", findings[-1].claim))
    return Diagnosis(tuple(findings), tuple(checks))


def displaced(summary: Summary, role: str) -> bool:
    """Whether a column was moved by some tokens and filled up with zeros."""
    if not opens_unscored(summary, role) and not closes_unscored(summary, role):
        return False
    near = _nearest(summary, role)
    return near is not None and near < UNRELATED and role not in shifted_roles(summary)


def _nearest(summary: Summary, role: str) -> float | None:
    """The largest correlation with another role, of those that were set against it."""
    found = [
        abs(state.correlation)
        for question, state in summary.questions.items()
        if role in (question.sampler, question.q) and question.q != question.sampler
    ]
    return max(found, default=None)


def _finding(summary: Summary, role: str) -> Finding:
    late, near = opens_unscored(summary, role), _nearest(summary, role)
    state = (summary.openings if late else summary.closings)[role]
    each = state.tokens / state.opened
    where, way, side = ("begin", "late", "before") if late else ("end", "early", "behind")
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=(
            f"{state.opened} of {state.sequences} sequences {where} with log-probs of {role} that "
            f"are 0 or missing, {each:.3g} each on average, and the others correlate by {near:.2f} "
            f"at most with those of another role. So the column was moved: each log-prob stands "
            f"about {each:.0f} tokens {way}, or belongs to other rows."
        ),
        numbers={"correlation": near, "tokens_each": each, "sequences": state.opened},
        cost="Every number with this role compares different tokens and means nothing; the zeros "
        "count as tokens of which the role is certain.",
        advice=f"Look for a prompt or a special token {side} the completion that one pass counts "
        "and the other does not, and for a shift that was done twice; cut both columns by the "
        "same positions.",
        where=(str(state.first),),
    )
