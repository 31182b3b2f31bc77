"""A teacher of whom only the k likeliest tokens are known, and what becomes of all the others.

K are the ids of a list, with the teacher's log-probs; the student's row is whole. With a bucket all
tokens outside K are taken for one token, of the mass that is left, on both sides: what follows is a
divergence of k + 1 outcomes, and by data processing at most the one of the whole vocabulary. It
holds for any K. The two forms without a bucket are biased in a way that no reader of the number can
bound; they are here because others use them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kullback.arrays import (
    are_integers,
    at_least_float32,
    held,
    marked,
    namespace,
    only_where,
    own,
    sum_dtype,
    taken,
    wide,
)
from kullback.columns import is_sentinel
from kullback.formulas.partial import HEAVIEST
from kullback.heads import ABSENT
from kullback.losses.distill_claim import DistillClaim

_NOISE = 16  # units of rounding, below which nothing is known of the mass outside a list


class Listed(NamedTuple):
    """Both sides on the ids of each list, and which ids of the vocabulary are in it.

    Attributes:
        log_t: the teacher's log-probs, [..., k]; -inf in a place without an id.
        log_s: the student's in the same places.
        inside: which ids are in the list, [..., vocabulary], bool.
        student: the student's whole rows, [..., vocabulary].
    """

    log_t: Any
    log_s: Any
    inside: Any
    student: Any


def listed(*, ids: Any, log_probs: Any, student: Any, keep: Any) -> Listed:
    """Both sides on the teacher's ids.

    Args:
        ids: [..., k]; -1 where a list has no further id.
        log_probs: the teacher's log-probs, [..., k], nats; NaN or -9999 where one is not known.
        student: the student's log-probs, [..., vocabulary].
        keep: which positions count, [...]; the lists of the others are never looked at.

    Raises:
        ValueError: ids are no integers, ids and log-probs differ in shape or do not line up with
            the student's rows; or (NumPy; NaN with torch and JAX) an id is outside the vocabulary
            or stands twice in a list, or the probabilities of a list sum to more than 1.01.

    Example:
        >>> import numpy as np
        >>> found = listed(ids=[1], log_probs=np.log([0.5]), student=np.log([0.8, 0.2]), keep=True)
        >>> np.exp(found.log_s), found.inside
        (array([0.2]), array([False,  True]))
    """
    xp = namespace(student)
    ids, log_t = own(ids, xp), held(at_least_float32(log_probs, xp), xp)
    if not are_integers(ids, xp):
        raise ValueError("the ids of teacher_top are no integers: give (ids, log_probs)")
    if ids.shape != log_t.shape or ids.shape[:-1] != student.shape[:-1]:
        raise ValueError(
            f"teacher_top has ids of shape {tuple(ids.shape)} and log-probs of shape "
            f"{tuple(log_t.shape)} for student rows of shape {tuple(student.shape)}: expected "
            "[..., k] twice, with the positions of the student"
        )
    size = student.shape[-1]
    known = (ids != ABSENT) & ~xp.isnan(log_t) & ~is_sentinel(log_t) & own(keep, xp)[..., None]
    fits = (ids >= 0) & (ids < size)
    log_t = xp.where(known, log_t, -xp.inf)
    place = xp.where(known & fits, ids, size)  # one past the end: nowhere
    inside = marked(place, size + 1, xp)[..., :size]
    once = xp.sum(inside, axis=-1) == xp.sum(known & fits, axis=-1)
    log_t = _refused(xp.all(fits | ~known, axis=-1), log_t, xp, f"an id outside 0 … {size - 1}")
    log_t = _refused(once, log_t, xp, "an id twice; leave out the sampled token that was appended")
    light = xp.sum(xp.exp(wide(log_t, xp)), axis=-1) <= HEAVIEST
    log_t = _refused(light, log_t, xp, "probabilities that sum to more than 1; give log-probs")
    log_s = taken(student, xp.where(known & fits, ids, 0), xp)
    return Listed(log_t, xp.where(known, log_s, -xp.inf), inside, student)


def with_bucket(lists: Listed, *, needs_teacher: bool) -> tuple[Any, Any]:
    """The logs of both sides on K and, as one more outcome, on all other tokens together.

    The student's mass outside is summed there, not taken from 1, so that its gradient is right
    however small it is. The teacher's is 1 less its list; what rounding could hide counts as 0, or
    as that much where a teacher of 0 would make the divergence infinite.

    Args:
        lists: both sides on K.
        needs_teacher: whether mass of the student where the teacher has none is infinitely bad.

    Returns:
        The teacher's and the student's, [..., k + 1].

    Example:
        >>> import numpy as np
        >>> student = np.log([0.8, 0.1, 0.1])
        >>> lists = listed(ids=[0], log_probs=np.log([0.5]), student=student, keep=True)
        >>> np.exp(with_bucket(lists, needs_teacher=False)).round(6)
        array([[0.5, 0.5], [0.8, 0.2]])
    """
    xp = namespace(lists.student)
    noise = _NOISE * float(xp.finfo(lists.log_t.dtype).eps)
    left = 1.0 - xp.sum(xp.exp(wide(lists.log_t, xp)), axis=-1, keepdims=True)
    left = xp.where(left > noise, left, noise if needs_teacher else 0.0)
    some = (left > 0) & ~xp.all(lists.inside, axis=-1, keepdims=True)
    log_t = xp.where(some, xp.log(xp.where(some, left, 1.0)), -xp.inf)
    log_s = _log_sum(xp.where(lists.inside, -xp.inf, lists.student), xp)
    joined = ((lists.log_t, log_t), (lists.log_s, log_s))
    teacher, student = (xp.concatenate([wide(one, xp) for one in two], axis=-1) for two in joined)
    return teacher, student


def renormalized(lists: Listed) -> tuple[Any, Any]:
    """The logs of both sides on K alone, each divided by its mass there: biased.

    Returns:
        The teacher's and the student's, [..., k]; a side without mass there stays as it is.

    Example:
        >>> import numpy as np
        >>> student = np.log([0.6, 0.2, 0.2])
        >>> lists = listed(ids=[0, 1], log_probs=np.log([0.4, 0.4]), student=student, keep=True)
        >>> np.exp(renormalized(lists)).round(6)
        array([[0.5 , 0.5 ], [0.75, 0.25]])
    """
    xp = namespace(lists.student)
    sums = ((one, _log_sum(one, xp)) for one in (lists.log_t, lists.log_s))
    teacher, student = (one - xp.where(mass == -xp.inf, 0.0, mass) for one, mass in sums)
    return teacher, student


def _refused(ok: Any, log_t: Any, xp: Any, fault: str) -> Any:
    def complaint(rows: Any) -> ValueError:
        row = int(rows.ravel().argmin())
        return ValueError(f"teacher_top, list {row} has {fault}")

    return only_where(ok[..., None], log_t, xp, complaint)


def _log_sum(log_x: Any, xp: Any) -> Any:
    """LogSumExp along the last axis, kept; -inf, and no gradient, where all are -inf."""
    highest = held(xp.amax(log_x, axis=-1, keepdims=True), xp)
    highest = xp.where(highest == -xp.inf, 0.0, highest)
    of_each = xp.exp(log_x - highest)
    total = xp.sum(of_each, axis=-1, keepdims=True, dtype=sum_dtype(of_each, xp))
    some = total > 0
    return xp.where(some, xp.log(xp.where(some, total, 1.0)) + highest, -xp.inf)


CLAIMS = {
    "bucket": DistillClaim(
        "the divergence of T and S, all tokens outside K taken for one",
        "that of the bucket at every token outside K: only their mass together is learned",
        can_be_negative=False,
        infinite_where="as the divergence, of the bucket too",
        bias="at most the divergence over the whole vocabulary, for any K",
    ),
    "renormalized": DistillClaim(
        "the divergence of T/T(K) and S/S(K) on K",
        "0 at tokens outside K, and mean 0 over K under S: the mass outside is never learned",
        can_be_negative=False,
        infinite_where="as the divergence, on K",
        bias="neither a bound nor an estimate: 0 for any mass outside K",
    ),
    "dropped": DistillClaim(
        "the sum over K of T log(T/S), or of S log(S/T)",
        "0 at tokens outside K; least where S is T/T(K) on K and 0 elsewhere, for KL(T||S)",
        can_be_negative=True,
        infinite_where="as the divergence, on K",
        bias="neither a bound nor an estimate: below 0 where S has more mass on K than T",
    ),
}
