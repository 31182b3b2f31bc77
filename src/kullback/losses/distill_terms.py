"""The divergences that a student is distilled with, as one term per category, none below 0.

Each takes the logarithms of both rows and is exact, in its value and, through `distill_slopes`, in
its derivatives. T is the teacher, S the student, both rows of probabilities. Terms are of the form
p k3(log(q/p)) or of its kin rather than p log(p/q): the sums are the same, no term cancels another,
and rows that sum to 1 only nearly are off in second order.
`CLAIMS` says what each is, where it ends, and what its gradient is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log, log1p
from typing import Any

from kullback.arrays import namespace
from kullback.formulas.k_family import k3
from kullback.formulas.weights import weighted_k3
from kullback.losses.distill_claim import DistillClaim
from kullback.losses.distill_slopes import carried, slope, unlike

TEACHER_FIRST, STUDENT_FIRST = "KL(teacher||student)", "KL(student||teacher)"
# An order this near an end cannot be told from it in float32, whose smallest number is 1e-45.
_AT_THE_END = 1e-30


def terms(divergence: str, share: float | None = None) -> Callable[[Any, Any], Any]:
    """The terms of a divergence, as a function of the logs of the teacher and of the student.

    Args:
        divergence: one of `CLAIMS`.
        share: its weight or order, from 0 to 1, if it has one.

    Example:
        >>> import numpy as np
        >>> teacher, student = np.log([0.5, 0.5]), np.log([0.9, 0.1])
        >>> round(float(terms("KL(teacher||student)")(teacher, student).sum()), 6)
        0.510826
        >>> round(float(terms("jsd", 1e-9)(teacher, student).sum()), 6)
        0.510826
    """
    divergence, share = settled(divergence, share)
    if share is None:
        value = {TEACHER_FIRST: _kl, STUDENT_FIRST: _student_first}[divergence]
    elif share in (0, 1):
        # An end that is no KL is 0 for any rows: as it stands it may be 0 times infinity.
        return _nothing
    else:
        value = partial(_WITH_SHARE[divergence], share=share)
    return carried(value, slope(divergence, share))


def settled(divergence: str, share: float | None) -> tuple[str, float | None]:
    """The divergence, or at an end of its share the KL that it is there.

    Example:
        >>> settled("jsd", 1.0), settled("jsd", 0.5)
        (('KL(student||teacher)', None), ('jsd', 0.5))
    """
    claim = CLAIMS[divergence]
    if share is not None and divergence == "alpha" and min(share, 1 - share) < _AT_THE_END:
        share = round(share)
    end = claim.at_0 if share == 0 else claim.at_1 if share == 1 else ""
    kls = {"KL(T||S)": TEACHER_FIRST, "KL(S||T)": STUDENT_FIRST}
    return (kls[end], None) if end in kls else (divergence, share)


def log_mixture(log_x: Any, log_y: Any, weight: float) -> Any:
    """The logarithm of weight x + (1 - weight) y: exactly that of x where x = y.

    Args:
        log_x: logarithms of any shape; -inf is the logarithm of 0.
        log_y: logarithms of the same shape.
        weight: the share of x, above 0 and below 1.

    Example:
        >>> import numpy as np
        >>> round(float(log_mixture(np.log(0.2), np.log(0.6), 0.25)), 6) == round(log(0.5), 6)
        True
    """
    xp = namespace(log_x, log_y)
    # What is not selected is replaced before it is computed: 0 times infinity is no gradient.
    neither = (log_x == -xp.inf) & (log_y == -xp.inf)
    x, y = xp.where(neither, 0.0, log_x), xp.where(neither, 0.0, log_y)
    near = xp.abs(y - x) < 1
    # log(weight) + logaddexp would cancel near x = y.
    close = x + xp.log1p((1.0 - weight) * xp.expm1(xp.where(near, y - x, 0.0)))
    far = xp.logaddexp(x + log(weight), y + log1p(-weight))
    return xp.where(neither, -xp.inf, xp.where(near, close, far))


def _kl(log_p: Any, log_q: Any) -> Any:
    return weighted_k3(log_p=log_p, log_q=log_q, log_sampler=0.0)


def _student_first(log_t: Any, log_s: Any) -> Any:
    return _kl(log_s, log_t)


def _nothing(_: Any, log_s: Any) -> Any:
    return _kl(log_s, log_s)


def _skew_teacher(log_t: Any, log_s: Any, share: float) -> Any:
    return _kl(log_t, log_mixture(log_t, log_s, share))


def _skew_student(log_t: Any, log_s: Any, share: float) -> Any:
    return _kl(log_s, log_mixture(log_s, log_t, share))


def _jsd(log_t: Any, log_s: Any, share: float) -> Any:
    middle = log_mixture(log_t, log_s, share)
    return (1.0 - share) * _kl(log_t, middle) + share * _kl(log_s, middle)


def _jsd_matched(log_t: Any, log_s: Any, share: float) -> Any:
    middle = log_mixture(log_t, log_s, share)
    return share * _kl(log_t, middle) + (1.0 - share) * _kl(log_s, middle)


def _alpha(log_t: Any, log_s: Any, share: float) -> Any:
    """The terms (a T + (1 - a) S - T^a S^(1 - a)) / (a (1 - a)); as they stand they cancel."""
    # Seen from the side that has the larger exponent: then nothing below is divided by nearly 0
    # but differences that vanish with it.
    (log_x, log_y, a) = (log_s, log_t, 1.0 - share) if share > 0.5 else (log_t, log_s, share)
    xp = namespace(log_x, log_y)
    neither = (log_x == -xp.inf) & (log_y == -xp.inf)
    v = xp.where(neither, 0.0, log_x) - xp.where(neither, 0.0, log_y)  # log(x/y)
    near = xp.abs(v) < 1
    small = xp.where(near, v, 0.0)
    # y (k3(v) - k3(a v) / a) is the number that `unlike` is, where that cancels.
    close = xp.exp(log_y) * (k3(small) - k3(a * small) / a)
    return xp.where(near, close, unlike(log_x, log_y, a)) / (1.0 - a)


_WITH_SHARE: dict[str, Callable[..., Any]] = {
    "skew KL(teacher||student)": _skew_teacher,
    "skew KL(student||teacher)": _skew_student,
    "jsd": _jsd,
    "jsd-matched": _jsd_matched,
    "alpha": _alpha,
}

CLAIMS = {
    TEACHER_FIRST: DistillClaim(
        "sum T log(T/S)", "-T/S", can_be_negative=False, infinite_where="T > 0 = S"
    ),
    STUDENT_FIRST: DistillClaim(
        "sum S log(S/T)", "log(S/T)", can_be_negative=False, infinite_where="S > 0 = T"
    ),
    "skew KL(teacher||student)": DistillClaim(
        "KL(T||M), M = w T + (1 - w) S",
        "-(1 - w) T/M",
        can_be_negative=False,
        infinite_where="T > 0 = S, at weight 0 only",
        at_0="KL(T||S)",
        at_1="0",
    ),
    "skew KL(student||teacher)": DistillClaim(
        "KL(S||M), M = w S + (1 - w) T",
        "log(S/M) - w S/M",
        can_be_negative=False,
        infinite_where="S > 0 = T, at weight 0 only",
        at_0="KL(S||T)",
        at_1="0",
    ),
    "jsd": DistillClaim(
        "(1 - w) KL(T||M) + w KL(S||M), M = w T + (1 - w) S",
        "w log(S/M) - (1 - w) ((1 - w) T + w S)/M",
        can_be_negative=False,
        infinite_where="T > 0 = S at weight 0, S > 0 = T at weight 1",
        at_0="KL(T||S)",
        at_1="KL(S||T)",
    ),
    "jsd-matched": DistillClaim(
        "w KL(T||M) + (1 - w) KL(S||M), M = w T + (1 - w) S",
        "(1 - w) log(S/M)",
        can_be_negative=False,
        infinite_where="",
        at_0="0",
        at_1="0",
    ),
    "alpha": DistillClaim(
        "(1 - sum T^a S^(1 - a)) / (a (1 - a))",
        "-(T/S)^a / a",
        can_be_negative=False,
        infinite_where="S > 0 = T at order 0, T > 0 = S at order 1",
        at_0="KL(S||T)",
        at_1="KL(T||S)",
    ),
}
