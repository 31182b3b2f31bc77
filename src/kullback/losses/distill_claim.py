"""What a distillation loss promises: its value, its ends, its gradient in the student, its bias."""

from __future__ import annotations

from dataclasses import dataclass

TEACHER_CONSTANT = "the teacher is a constant: it is detached"
PREFIXES_CONSTANT = "the prefixes are given: who chose them is not differentiated"
FROM_TEACHER = "the ids were drawn from the teacher at the same temperature, with replacement"
FROM_PROPOSAL = "the ids were drawn from the proposal, with replacement"
TEACHER_INSIDE_PROPOSAL = "the teacher puts no mass where the proposal has none"
UNSELECTED = "no draw was selected on its outcome"
GIVEN = (TEACHER_CONSTANT, PREFIXES_CONSTANT)


@dataclass(frozen=True, slots=True)
class DistillClaim:
    """What one distillation loss is at one prefix; T is the teacher, S the student.

    Proved in tests/losses.

    Attributes:
        value: what it is, or what its mean over the draws is, as a formula.
        slope: g, its derivative in S(v), up to a constant; the gradient in the student's logit of
            v is S(v) (g(v) - sum S g).
        can_be_negative: whether it, or one draw of it, can be below 0.
        infinite_where: on which tokens v it is infinite; "" if it never is.
        at_0: what it is when its weight or order is 0; "" where it has none.
        at_1: what it is when its weight or order is 1.
        bias: how it differs from the divergence over the whole vocabulary; "" if it does not.
        conditions: what has to be true for all of this.

    Example:
        >>> from kullback.losses.distill_terms import CLAIMS
        >>> CLAIMS["jsd"].at_0, CLAIMS["jsd-matched"].at_0
        ('KL(T||S)', '0')
    """

    value: str
    slope: str
    can_be_negative: bool
    infinite_where: str
    at_0: str = ""
    at_1: str = ""
    bias: str = ""
    conditions: tuple[str, ...] = GIVEN
