"""A teacher of whom only tokens are known that were drawn from it: unbiased for KL(T||S).

The cross-entropy -sum T log S is linear in T. So the mean of -log S(x) over x ~ T is unbiased for
it whatever S is, and its gradient is that of KL(T||S), which differs from it by a constant only:
minus the teacher's entropy. With the log-probs that the teacher gave to the ids, or its entropy,
the constant is there and the mean is KL(T||S) itself. A top k of the same size is biased.
"""

from __future__ import annotations

from typing import Any

from kullback.arrays import (
    are_integers,
    at_least_float32,
    held,
    namespace,
    only_where,
    own,
    quiet,
    sum_dtype,
    taken,
    wide,
)
from kullback.losses.distill_claim import (
    FROM_PROPOSAL,
    FROM_TEACHER,
    GIVEN,
    TEACHER_INSIDE_PROPOSAL,
    UNSELECTED,
    DistillClaim,
)


def from_samples(
    *, ids: Any, log_t: Any, log_proposal: Any, entropy: Any, student: Any, keep: Any
) -> Any:
    """The mean over the draws of each position of w (log T(x) - log S(x)), w = T/proposal.

    Args:
        ids: the draws, [..., n].
        log_t: the teacher's log-probs of them, [..., n], or None.
        log_proposal: the log-probs under what they were drawn from, or None: from the teacher.
        entropy: the teacher's entropy at each position, [...], taken off in place of the mean of
            -log T(x); or None.
        student: the student's log-probs, [..., vocabulary].
        keep: which positions count, [...].

    Returns:
        [...], nats; without log_t and entropy the cross-entropy.

    Raises:
        ValueError: ids are no integers, shapes do not fit, or (NumPy; NaN with torch and JAX) an
            id is outside the vocabulary.

    Example:
        >>> import numpy as np
        >>> nothing = {"log_t": None, "log_proposal": None, "entropy": None}
        >>> student = np.log([0.5, 0.5])
        >>> round(float(from_samples(ids=[0, 1], student=student, keep=True, **nothing)), 6)
        0.693147
    """
    xp = namespace(student)
    ids, keep, size = own(ids, xp), own(keep, xp), student.shape[-1]
    if not are_integers(ids, xp):
        raise ValueError("teacher_samples are no integers: give ids, or (ids, log_probs)")
    if ids.shape[:-1] != student.shape[:-1]:
        raise ValueError(
            f"teacher_samples has ids of shape {tuple(ids.shape)} for student rows of shape "
            f"{tuple(student.shape)}: expected [..., n], with the positions of the student"
        )
    counts = keep[..., None]
    fits = ~counts | ((ids >= 0) & (ids < size))
    drawn = taken(student, xp.where(counts & fits, ids, 0), xp)
    drawn = only_where(fits, drawn, xp, _outside(size))
    known = xp.zeros_like(drawn) if log_t is None else _given("log_t", log_t, drawn, counts, xp)
    weight = 1.0
    if log_proposal is not None:
        # A proposal may draw what the teacher never would: a weight of 0 and no infinity beside it.
        possible = known > -xp.inf
        drawn, known = (xp.where(possible, one, 0.0) for one in (drawn, known))
        log_w = known - _given("log_proposal", log_proposal, drawn, counts, xp)
        with quiet(xp):
            weight = xp.where(possible, xp.exp(log_w), 0.0)
    value = weight * (known - drawn if entropy is None else 0.0 - drawn)
    mean = xp.sum(value, axis=-1, dtype=sum_dtype(value, xp)) / ids.shape[-1]
    if entropy is None:
        return mean
    return mean - wide(_given("teacher_entropy", entropy, mean, keep, xp), xp)


def _given(name: str, values: Any, like: Any, counts: Any, xp: Any) -> Any:
    """The teacher's numbers as constants, 0 where a position does not count."""
    array = held(at_least_float32(values, xp), xp)
    if array.shape != like.shape:
        raise ValueError(
            f"{name} of the samples has shape {tuple(array.shape)}, expected {tuple(like.shape)}"
        )
    return xp.where(counts, array, 0.0)


def _outside(size: int) -> Any:
    return lambda ok: ValueError(
        f"teacher_samples, draw {int(ok.ravel().argmin())} has an id outside 0 … {size - 1}"
    )


_DRAWN = (*GIVEN, FROM_TEACHER, UNSELECTED)
_SLOPE = "on average that of KL(T||S), -T/S"
_AT_A_DRAW = "S = 0 at a draw"

CLAIMS = {
    "ids": DistillClaim(
        "on average -sum T log S = KL(T||S) + H(T)",
        _SLOPE,
        can_be_negative=False,
        infinite_where=_AT_A_DRAW,
        bias="above KL(T||S) by the teacher's entropy, a constant",
        conditions=_DRAWN,
    ),
    "ids and log-probs": DistillClaim(
        "on average KL(T||S)",
        _SLOPE,
        can_be_negative=True,
        infinite_where=_AT_A_DRAW,
        conditions=_DRAWN,
    ),
    "ids and entropy": DistillClaim(
        "on average KL(T||S)",
        _SLOPE,
        can_be_negative=True,
        infinite_where=_AT_A_DRAW,
        conditions=_DRAWN,
    ),
    "ids, log-probs and proposal": DistillClaim(
        "on average KL(T||S)",
        _SLOPE,
        can_be_negative=True,
        infinite_where=_AT_A_DRAW,
        conditions=(*GIVEN, FROM_PROPOSAL, TEACHER_INSIDE_PROPOSAL, UNSELECTED),
    ),
}
