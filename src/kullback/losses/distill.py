"""A student to be held to a teacher, position by position: `kb.distill`."""

from __future__ import annotations

from math import inf, log
from typing import Any

from kullback.arrays import at_least_float32, held, namespace, only_where, own, sum_dtype
from kullback.formulas.categorical import log_softmax, normalized
from kullback.formulas.weights import weighted_k1
from kullback.levels import totals
from kullback.losses.distill_terms import CLAIMS, STUDENT_FIRST, TEACHER_FIRST, settled, terms
from kullback.losses.sampled_teacher import from_samples
from kullback.losses.top_k_teacher import CLAIMS as TAILS
from kullback.losses.top_k_teacher import listed, renormalized, with_bucket

AGGREGATES = ("token_mean", "sequence_sum", "none")


def distill(
    *,
    student_logits: Any = None,
    student_log_probs: Any = None,
    teacher_logits: Any = None,
    teacher_log_probs: Any = None,
    teacher_top: tuple[Any, Any] | None = None,
    teacher_samples: Any = None,
    log_proposal: Any = None,
    teacher_entropy: Any = None,
    divergence: str = TEACHER_FIRST,
    weight: float | None = None,
    order: float | None = None,
    temperature: float = 1.0,
    times_t_squared: bool = False,
    tail: str = "bucket",
    biased: bool = False,
    mask: Any = None,
    aggregate: str = "token_mean",
) -> Any:
    """The divergence of a student from its teacher, to be differentiated in the student.

    D(T, S) at each position, with w = ``weight``, a = ``order``:

        KL(teacher||student)       sum T log(T/S)
        KL(student||teacher)       sum S log(S/T)
        skew KL(teacher||student)  KL(T||M),  M = w T + (1 - w) S
        skew KL(student||teacher)  KL(S||M),  M = w S + (1 - w) T
        jsd                        (1 - w) KL(T||M) + w KL(S||M),  M = w T + (1 - w) S
        jsd-matched                w KL(T||M) + (1 - w) KL(S||M),  M = w T + (1 - w) S
        alpha                      (1 - sum T^a S^(1 - a)) / (a (1 - a))

    Exact at each prefix, never negative, and its gradient in the student's logits is exactly its
    own; the teacher is detached, and so is the choice of the prefixes: if the student sampled them,
    the part of a sequence KL's gradient that goes through them is not here.

    skew KL is KL at weight 0 and 0 at 1. jsd is KL(T||S) at weight 0, KL(S||T) at 1 and continuous
    there. jsd-matched is 0 at both ends (TRL and Liger compute it between the ends, and the KLs at
    them, so that their ``beta`` jumps). alpha is KL(S||T) at order 0, KL(T||S) at 1, continuous
    there; in Amari's letters it has α = 1 - 2a. All but the KLs (and what is one at an end) are
    finite where the supports differ.

    **Temperature** divides the logits of both sides. The divergence then shrinks like 1/T², and so
    does its gradient; ``times_t_squared`` multiplies by T² to make up for it (Hinton 2015).

    A teacher of whom the **top k** are known: all other tokens are one bucket on both sides. A
    lower bound of the divergence, never negative; the gradient of the tail moves its mass as a
    whole. A **sampled** teacher: unbiased for KL(teacher||student), its gradient, too; single
    values can be negative. Without the teacher's log-probs or entropy the value is the
    cross-entropy, above the KL by the entropy of the teacher.

    Sources: Hinton 2015 (temperature), Agarwal 2024 (the mixture), Ko 2024 (skew), Amari 2009
    (alpha), Anshumann 2025 (samples); `kullback.losses` holds the claims.

    Args:
        student_logits: [sequences, tokens, vocabulary]; or
        student_log_probs: the same as normalized log-probabilities, nats.
        teacher_logits: the teacher's, of the same shape; or
        teacher_log_probs: as normalized log-probabilities, nats; or
        teacher_top: (ids, log_probs), each [sequences, tokens, k], -1 and NaN where a list ends; or
        teacher_samples: ids drawn from the teacher with replacement, [sequences, tokens, n], or
            (ids, log_probs) with the teacher's log-probs of them.
        log_proposal: the log-probs of the samples under what drew them, if not the teacher.
        teacher_entropy: of the sampled teacher, [sequences, tokens], nats.
        divergence: one of the names above; ‖ is ||.
        weight: w, from 0 to 1, of the skew and jsd ones.
        order: a, from 0 to 1, of alpha.
        temperature: what the logits of both sides are divided by; 1 unless the teacher is whole.
        times_t_squared: multiply by the square of the temperature.
        tail: of a top k: "bucket", or with ``biased`` "renormalized" (each side divided by its
            mass on the list) or "dropped" (the sum over the list alone; of the two KLs only).
        biased: to say that a tail that is no bound of anything is meant.
        mask: which positions count, [sequences, tokens], bool or 0/1. The others may hold anything.
        aggregate: "token_mean" (Σ values / Σ tokens), "sequence_sum" (Σ values / sequences), or
            "none": one value per position, 0 where the mask is 0.

    Returns:
        Nats, in float64 where the device has it: one number, or [sequences, tokens]. NaN where
        nothing counts.

    Raises:
        TypeError: the student or the teacher is given in no form or in two, or arrays are of two
            libraries.
        ValueError: shapes do not fit; an option is unknown, missing or out of place; or (NumPy; NaN
            with torch and JAX) rows are no log-probabilities or ids no ids.

    Example:
        >>> teacher, student = [[[2.0, 1.0, 0.0]]], [[[0.0, 1.0, 2.0]]]
        >>> pair = {"teacher_logits": teacher, "student_logits": student}
        >>> round(distill(**pair), 6), round(distill(**pair, divergence="jsd", weight=0.5), 6)
        (1.150421, 0.247588)
    """
    divergence, share = _choice(divergence.replace("‖", "||"), weight, order)
    teacher = _only_one(
        "teacher",
        teacher_logits=teacher_logits,
        teacher_log_probs=teacher_log_probs,
        teacher_top=teacher_top,
        teacher_samples=teacher_samples,
    )
    _refuse_out_of_place(teacher, divergence, temperature, log_proposal, teacher_entropy)
    _refuse_tail(teacher, divergence, tail, biased=biased)
    side = _only_one("student", student_logits=student_logits, student_log_probs=student_log_probs)
    student, keep = _rows(side, student_logits, student_log_probs, mask, temperature)
    if teacher == "teacher_top":
        values = _of_top(teacher_top, divergence, share, tail, student, keep)
    elif teacher == "teacher_samples":
        values = _of_samples(teacher_samples, log_proposal, teacher_entropy, student, keep)
    else:
        rows, _ = _rows(teacher, teacher_logits, teacher_log_probs, mask, temperature)
        values = _of_rows(held(rows, namespace(rows, student)), student, divergence, share)
    scale = temperature * temperature if times_t_squared else 1.0
    return _aggregated(scale * values, mask, keep, aggregate)


def _choice(divergence: str, weight: float | None, order: float | None) -> tuple[str, float | None]:
    """The divergence, as a KL where it is at an end of its weight or order, and that number."""
    if divergence not in CLAIMS:
        raise ValueError(f"divergence {divergence!r} is none of {', '.join(CLAIMS)}")
    takes = "order" if divergence == "alpha" else "weight" if CLAIMS[divergence].at_0 else ""
    given = {"weight": weight, "order": order}
    if any(one is not None for name, one in given.items() if name != takes):
        raise ValueError(
            f"weight={weight}, order={order}: {divergence} takes {takes or 'neither of the two'}"
        )
    share = given.get(takes)
    if takes and (share is None or not 0 <= share <= 1):
        raise ValueError(f"{takes}={share}: {divergence} needs {takes}= from 0 to 1, such as 0.5")
    return settled(divergence, share)


def _only_one(side: str, **forms: Any) -> str:
    """The name of the one form in which a side is given."""
    given = [name for name, one in forms.items() if one is not None]
    if len(given) != 1:
        raise TypeError(
            f"expected one of {', '.join(forms)}, got {' and '.join(given) or 'none'}: give the "
            f"{side} in one form"
        )
    return given[0]


def _refuse_out_of_place(
    teacher: str, divergence: str, temperature: float, log_proposal: Any, entropy: Any
) -> None:
    if not 0 < temperature < inf:
        raise ValueError(f"temperature={temperature}: expected a number above 0")
    sampled = teacher == "teacher_samples"
    if temperature != 1 and (sampled or teacher == "teacher_top"):
        raise ValueError(
            f"temperature={temperature} with {teacher}: what the teacher is at another "
            "temperature does not follow from it. Take the teacher's log-probs (and samples) at "
            "that temperature, divide the student's logits by it, and leave temperature=1"
        )
    if sampled and divergence != TEACHER_FIRST:
        raise ValueError(
            f"{divergence} of teacher_samples: only {TEACHER_FIRST} is linear in the teacher, so "
            "that its samples are unbiased for it; give teacher_top, or whole rows"
        )
    if not sampled and not (log_proposal is None and entropy is None):
        raise ValueError("log_proposal and teacher_entropy go with teacher_samples only")


def _refuse_tail(teacher: str, divergence: str, tail: str, *, biased: bool) -> None:
    if tail not in TAILS:
        raise ValueError(f"tail {tail!r} is none of {', '.join(TAILS)}")
    if biased != (tail != "bucket"):
        raise ValueError(
            f"tail={tail!r}, biased={biased}: the bucket is a lower bound, the other tails bound "
            "nothing; to use one of them all the same say biased=True"
        )
    if tail != "bucket" and teacher != "teacher_top":
        raise ValueError(f"tail={tail!r} is for teacher_top: {teacher} leaves no tail out")
    if tail == "dropped" and divergence not in (TEACHER_FIRST, STUDENT_FIRST):
        raise ValueError(f"tail='dropped' exists for the two KLs only, not for {divergence}")


def _rows(name: str, logits: Any, log_probs: Any, mask: Any, temperature: float) -> tuple[Any, Any]:
    """The log-probs at the temperature, uniform where the mask is 0; and which positions count."""
    given = log_probs if logits is None else logits
    xp = namespace(given) if mask is None else namespace(given, mask)
    rows = at_least_float32(given, xp)
    if rows.ndim < 1:
        raise ValueError(f"{name} is one number, expected [sequences, tokens, vocabulary]")
    if mask is None:
        keep = xp.ones_like(rows[..., 0], dtype=bool)
    else:
        keep = own(mask, xp) != 0
        if keep.shape != rows.shape[:-1]:
            raise ValueError(
                f"the mask has shape {tuple(keep.shape)}, {name} {tuple(rows.shape)}: expected "
                "one number for each row"
            )
        # Before anything is computed: what stands there may be NaN, and 0 times NaN is NaN.
        rows = xp.where(keep[..., None], rows, -log(rows.shape[-1]))
    if logits is None:
        rows = normalized(name, rows, xp)
        if temperature == 1:
            return rows, keep
    return log_softmax(rows if temperature == 1 else rows / temperature), keep


def _of_rows(teacher: Any, student: Any, divergence: str, share: float | None) -> Any:
    if teacher.shape != student.shape:
        raise ValueError(
            f"the teacher has shape {tuple(teacher.shape)}, the student {tuple(student.shape)}: "
            "give both over one vocabulary (cut padded columns) at the same positions"
        )
    return _summed(terms(divergence, share)(teacher, student))


def _of_top(
    top: Any, divergence: str, share: float | None, tail: str, student: Any, keep: Any
) -> Any:
    ids, log_probs = top
    lists = listed(ids=ids, log_probs=log_probs, student=student, keep=keep)
    if tail == "dropped":
        pair = {"log_p": lists.log_t, "log_q": lists.log_s}
        if divergence == STUDENT_FIRST:
            pair = {"log_p": lists.log_s, "log_q": lists.log_t}
        return _summed(weighted_k1(**pair, log_sampler=0.0))
    if tail == "renormalized":
        both = renormalized(lists)
    else:
        both = with_bucket(lists, needs_teacher=divergence == STUDENT_FIRST)
    return _summed(terms(divergence, share)(*both))


def _of_samples(samples: Any, log_proposal: Any, entropy: Any, student: Any, keep: Any) -> Any:
    ids, log_t = samples if isinstance(samples, tuple) else (samples, None)
    if log_t is None and log_proposal is not None:
        raise ValueError("log_proposal needs the teacher's log-probs too: give (ids, log_probs)")
    return from_samples(
        ids=ids,
        log_t=log_t,
        log_proposal=log_proposal,
        entropy=entropy,
        student=student,
        keep=keep,
    )


def _summed(of_each: Any) -> Any:
    xp = namespace(of_each)
    return xp.sum(of_each, axis=-1, dtype=sum_dtype(of_each, xp))


def _aggregated(values: Any, mask: Any, keep: Any, aggregate: str) -> Any:
    if aggregate not in AGGREGATES:
        raise ValueError(f"aggregate {aggregate!r} is none of {', '.join(AGGREGATES)}")
    if aggregate == "sequence_sum" and values.ndim != 2:
        raise ValueError(
            f"sequence_sum of positions {tuple(values.shape)}: expected [sequences, tokens]"
        )
    if mask is not None:
        xp = namespace(values)
        flags = own(mask, xp)
        values = only_where((flags == 0) | (flags == 1), xp.where(keep, values, 0.0), xp, _weights)
    if aggregate == "none":
        return values
    shape = values.shape if aggregate == "sequence_sum" else (1, -1)  # token_mean knows no rows
    return totals(values.reshape(shape), mask=keep.reshape(shape)).at(aggregate)


def _weights(_: Any) -> ValueError:
    return ValueError("the mask holds other values than 0 and 1: it is no weight")
