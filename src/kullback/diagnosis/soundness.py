"""Can a test of the sampler use these columns? Only log-probs of what they are said to be."""

from __future__ import annotations

from kullback.diagnosis.alignment import is_shifted, shifted_roles
from kullback.diagnosis.boundaries import badly_packed
from kullback.diagnosis.clamped import clamped_at
from kullback.diagnosis.column_faults import holds_log_probs, stands_for_infinity
from kullback.diagnosis.displaced import displaced
from kullback.diagnosis.environment import unscored_inside
from kullback.diagnosis.once import once
from kullback.diagnosis.openings import opens_unscored
from kullback.diagnosis.rejected import cut_by_rejection
from kullback.diagnosis.reshaped import added_up, averaged, floored
from kullback.diagnosis.scaled import scaled_roles
from kullback.diagnosis.unscored import holds_zeros
from kullback.estimation.summary import Summary
from kullback.question import Question

REJECTED = "the mask was cut by log-ratios, and what is left is a selection"


@once
def scored(summary: Summary, role: str) -> bool:
    """Whether the column holds log-probs of what it is said to, at every token."""
    return is_sound(summary, role) and not holds_zeros(summary, role)


def is_sound(summary: Summary, role: str) -> bool:
    """The same, zeros apart: in a sampler's column these make a product of q/s smaller only."""
    faults = (opens_unscored, unscored_inside, displaced, added_up, averaged, floored)
    if any(fault(summary, role) for fault in faults) or role in badly_packed(summary):
        return False
    if role in scaled_roles(summary):
        return False
    column = summary.columns[role]
    return holds_log_probs(column) and not stands_for_infinity(column)


@once
def unfit(summary: Summary, question: Question) -> str:
    """Why the product of its ratios is no martingale if the sampler is honest; else nothing.

    It is none over a selection: a token outside a support makes the whole product 0 and is left
    out of the sums, and a log-prob may be missing because of what was drawn. Nor is it one if a
    column holds something else, or stands elsewhere.
    """
    state = summary.questions[question]
    if cut_by_rejection(summary):
        return REJECTED
    for role in question.roles:
        if not (is_sound if role == question.sampler else scored)(summary, role):
            return f"what stands in the column of {role} is not its log-probs throughout"
    if not state.tokens:
        return "no token has the log-probs of both"
    if state.infinite or state.missing:
        return (
            f"{state.infinite + state.missing} log-probs are infinite or missing, perhaps "
            "because of what was drawn"
        )
    if any(clamped_at(summary, one) for one in _between(summary, question)):
        return "its log-ratios were clamped"
    if is_shifted(state) or shifted_roles(summary) & set(question.roles):
        return "the columns are shifted against each other"
    return ""


def _between(summary: Summary, question: Question) -> list[Question]:
    """The questions that set the sampler of a question against its other roles, one at a time."""
    return [
        one
        for one in summary.questions
        if one.p == question.sampler and one.q in question.roles and one.weight == "none"
    ]
