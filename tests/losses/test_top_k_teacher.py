"""A bucket for the tokens that are not listed: a lower bound, with the gradient of that bound."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kullback as kb
from kullback.arrays import to_numpy
from kullback.formulas.categorical import log_softmax
from kullback.losses.distill_terms import CLAIMS as DIVERGENCES
from kullback.losses.top_k_teacher import CLAIMS, listed, renormalized, with_bucket

from .plain import SLOPES, VALUES, gradient, in_logits, softmax

T = np.array([0.4, 0.25, 0.1, 0.08, 0.07, 0.06, 0.04])
S = np.array([0.45, 0.3, 0.12, 0.05, 0.04, 0.02, 0.02])
SHARED = [name for name, claim in DIVERGENCES.items() if claim.at_0]
KLS = ["KL(teacher||student)", "KL(student||teacher)"]


def share(name: str, of: float = 0.3) -> dict[str, Any]:
    return {} if name in KLS else {"order" if name == "alpha" else "weight": of}


def top(t: Any, ids: Any) -> tuple[Any, Any]:
    ids = np.array(ids, dtype=np.int64)
    return ids[None, None], np.log(t[ids])[None, None]


def bounded(name: str, t: Any, s: Any, ids: Any, **more: Any) -> float:
    rows = {"student_log_probs": np.log(s)[None, None], "teacher_top": top(t, ids)}
    return kb.distill(**rows, divergence=name, **share(name), **more)


def whole(name: str, t: Any, s: Any) -> float:
    rows = {"student_log_probs": np.log(s)[None, None], "teacher_log_probs": np.log(t)[None, None]}
    return kb.distill(**rows, divergence=name, **share(name))


def coarse(row: Any, ids: Any) -> Any:
    """The row on these ids, and all others as one."""
    rest = [v for v in range(row.shape[-1]) if v not in ids]
    return np.concatenate([row[..., list(ids)], row[..., rest].sum(-1, keepdims=True)], axis=-1)


SUBSETS = [ids for k in (1, 3, 6) for ids in combinations(range(7), k)]


@pytest.mark.parametrize("name", DIVERGENCES)
def test_the_bucket_is_the_divergence_of_what_is_left_apart_and_bounds_it_for_any_list(name):
    exact = whole(name, T, S)
    for ids in SUBSETS:
        value = bounded(name, T, S, ids)
        plain = VALUES[DIVERGENCES[name].value](coarse(T, ids), coarse(S, ids), 0.3)
        assert value == pytest.approx(plain, rel=1e-11)
        assert 0 <= value <= exact * (1 + 1e-12)
    assert bounded(name, T, S, ()) < 1e-30
    assert bounded(name, T, S, range(7)) == pytest.approx(exact, rel=1e-12)


ROWS = st.lists(st.floats(-8, 8), min_size=5, max_size=5)


@pytest.mark.parametrize("name", DIVERGENCES)
@given(t=ROWS, s=ROWS, ids=st.sets(st.integers(0, 4), max_size=5))
def test_it_is_a_bound_between_any_two_rows(name, t, s, ids):
    t, s = softmax(np.array(t)), softmax(np.array(s))
    value = bounded(name, t, s, sorted(ids))
    assert 0 <= value <= whole(name, t, s) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("name", DIVERGENCES)
def test_the_gradient_is_that_of_the_bound_and_moves_the_tail_as_a_whole(name, traceable):
    ids = [0, 2, 5]
    of_top = tuple(
        traceable.array(one, kind)
        for one, kind in zip(top(T, ids), ("int32", "float64"), strict=True)
    )

    def value(z: Any) -> Any:
        rows = {"student_logits": z[None, None], "teacher_top": of_top}
        return kb.distill(**rows, divergence=name, **share(name))

    (found,) = traceable.in_one_piece(traceable.gradient(value))(traceable.array(np.log(S)))
    found = to_numpy(found, "found")

    def plain(z: Any) -> Any:
        return VALUES[DIVERGENCES[name].value](coarse(T, ids), coarse(softmax(z), ids), 0.3)

    np.testing.assert_allclose(found, gradient(plain, np.log(S)), rtol=1e-11, atol=1e-15)
    # "that of the bucket at every token outside K": one g for all of them.
    g = SLOPES[DIVERGENCES[name].slope](coarse(T, ids), coarse(S, ids), 0.3)
    each = np.full(7, g[-1])
    each[ids] = g[:-1]
    np.testing.assert_allclose(found, in_logits(each, S), rtol=1e-11, atol=1e-15)


def test_the_gradient_of_a_tail_that_is_nearly_nothing_has_its_digits(traceable):
    """Taken from 1, in float32, a student's tail of 1e-9 would be 0 or 6e-8."""
    logits = np.array([0.0, -1.0, -20.0, -21.0, -22.0])
    t = softmax(np.array([0.0, -1.0, -2.0, -2.0, -2.0]))
    of_top = top(t, [0, 1])
    wide = traceable.array(of_top[0], "int32"), traceable.array(of_top[1], "float32")

    def value(z: Any) -> Any:
        return kb.distill(student_logits=z[None, None], teacher_top=wide)

    (found,) = traceable.in_one_piece(traceable.gradient(value))(traceable.array(logits, "float32"))
    s = softmax(logits)
    tail = s[2:] / s[2:].sum()
    expected = np.concatenate([s[:2] - t[:2], s[2:] - t[2:].sum() * tail])
    np.testing.assert_allclose(to_numpy(found, "found"), expected, rtol=1e-5, atol=1e-7)


def biased(tail: str, name: str, t: Any = T, s: Any = S, ids: Any = (0, 1, 2)) -> float:
    return bounded(name, t, s, ids, tail=tail, biased=True)


def test_the_biased_tails_are_what_their_claims_say():
    assert CLAIMS.keys() == {"bucket", "renormalized", "dropped"}
    head, mine = T[:3], S[:3]
    assert biased("dropped", KLS[0]) == pytest.approx(np.sum(head * np.log(head / mine)))
    assert biased("dropped", KLS[1]) == pytest.approx(np.sum(mine * np.log(mine / head)))
    assert CLAIMS["dropped"].can_be_negative
    assert biased("dropped", KLS[0]) < -0.1
    for name in DIVERGENCES:
        plain = VALUES[DIVERGENCES[name].value](head / head.sum(), mine / mine.sum(), 0.3)
        assert biased("renormalized", name) == pytest.approx(plain, rel=1e-11)
        # "0 for any mass outside K"
        outside = np.concatenate([0.5 * T[:3], [1 - 0.5 * T[:3].sum()]])
        assert biased("renormalized", name, np.append(T[:3], 0.25), outside) < 1e-15


def test_a_student_without_mass_on_the_list_is_infinitely_far_and_no_list_is_nothing():
    with np.errstate(divide="ignore"):
        student = np.log([[[0.0, 0.0, 0.5, 0.5]]])
    given = {"student_log_probs": student, "tail": "renormalized", "biased": True}
    assert kb.distill(**given, teacher_top=top(T, [0, 1])) == np.inf
    assert kb.distill(**given, teacher_top=(np.array([[[-1]]]), np.zeros((1, 1, 1)))) == 0


def test_what_the_biased_tails_teach_of_the_tail(traceable):
    """Nothing, and that it should vanish; the bucket holds it to the teacher's."""
    ids, log_t = top(T, [0, 1, 2])
    of_top = traceable.array(ids, "int32"), traceable.array(log_t)
    outside = {}
    for tail in CLAIMS:

        def value(z: Any, tail: str = tail) -> Any:
            more = {"tail": tail, "biased": tail != "bucket"}
            return kb.distill(student_logits=z[None, None], teacher_top=of_top, **more)

        found = traceable.in_one_piece(traceable.gradient(value))(traceable.array(np.log(S)))
        outside[tail] = to_numpy(found[0], "found")[3:].sum()
    assert abs(outside["renormalized"]) < 1e-15
    assert outside["dropped"] == pytest.approx(0.75 * S[3:].sum())  # down, wherever it is
    assert outside["bucket"] == pytest.approx(S[3:].sum() - T[3:].sum())


def test_a_bucket_within_rounding_of_nothing_is_not_infinite(library):
    """The list has all there is, its float32 sum a little less or more; the student has a rest."""
    log_t = library.array(np.log([[[0.7, 0.3]]]), "float32")
    student = library.array(np.log([[[0.5, 0.3, 0.2]]]), "float32")
    ids = library.array([[[0, 1]]], "int32")

    def every(log_t: Any, student: Any) -> Any:
        rows = {"student_log_probs": student, "teacher_top": (ids, log_t)}
        return [kb.distill(**rows, divergence=name, **share(name)) for name in DIVERGENCES]

    every = library.in_one_piece(every)
    for shift in (-2e-7, 0.0, 2e-7):
        assert all(0 < float(found) < 5 for found in every(log_t + shift, student))
    everything = student[..., :2] - np.log(0.8)
    for name, found in zip(DIVERGENCES, every(log_t, everything), strict=True):
        exact = whole(name, np.array([0.7, 0.3]), np.array([0.625, 0.375]))
        assert float(found) == pytest.approx(exact, rel=1e-4)


def each(library: Any) -> Any:
    return library.in_one_piece(
        lambda student, ids, log_t: kb.distill(
            student_log_probs=student, teacher_top=(ids, log_t), aggregate="none"
        )
    )


def test_lists_of_differing_length_end_in_minus_1_or_in_a_log_prob_that_is_not_known(library):
    student = library.array(np.log([[S, S, S]]))
    ids = np.array([[[0, 1, 2], [0, 1, -1], [0, 1, 4]]])
    log_t = np.log(T[ids])
    log_t[0, 2, 2] = -9999.0
    log_t[0, 1, 2] = np.nan
    given = library.array(ids, "int32"), library.array(log_t)
    found = each(library)(student, *given)
    two = bounded(KLS[0], T, S, [0, 1])
    np.testing.assert_allclose(to_numpy(found, "x"), [[bounded(KLS[0], T, S, [0, 1, 2]), two, two]])


FAULTS = {
    "an id outside 0 … 6": ([0, 7], [-1.0, -2.0]),
    "an id twice": ([1, 1], [-1.0, -1.5]),
    "sum to more than 1": ([0, 1], [-0.1, -0.2]),
}


@pytest.mark.parametrize("said", FAULTS)
def test_what_is_no_list_is_refused_and_nan_where_it_cannot_be(said, library):
    student = library.array(np.log([[S, S]]))
    ids, log_t = ([[[0, 1], one]] for one in (FAULTS[said][0], FAULTS[said][1]))
    log_t[0][0] = [-1.0, -2.0]
    given = library.array(ids, "int32"), library.array(log_t)
    if library.name == "numpy":
        with pytest.raises(ValueError, match=f"teacher_top, list 1 has .*{said}"):
            kb.distill(student_log_probs=student, teacher_top=given)
        return
    found = each(library)(student, *given)
    assert np.isnan(to_numpy(found, "found")).tolist() == [[False, True]]


def test_log_probs_and_ids_in_the_wrong_order_are_refused(library):
    """As torch.topk returns them."""
    ids, log_t = top(T, [0, 1])
    swapped = library.array(log_t), library.array(ids, "int32")
    with pytest.raises(ValueError, match="ids of teacher_top are no integers"):
        kb.distill(student_log_probs=library.array(np.log([[S]])), teacher_top=swapped)


def test_lists_for_other_positions_are_refused():
    lists = top(T, [0, 1])
    with pytest.raises(ValueError, match=r"teacher_top has ids of shape \(1, 1, 2\).*\(2, 1, 7\)"):
        kb.distill(student_log_probs=np.log([[S], [S]]), teacher_top=lists)
    with pytest.raises(ValueError, match=r"log-probs of shape \(1, 1, 3\)"):
        kb.distill(student_log_probs=np.log([[S]]), teacher_top=(lists[0], top(T, [0, 1, 2])[1]))


def test_the_parts_of_a_list():
    lists = listed(
        ids=np.array([2, 0, -1]), log_probs=np.log([0.1, 0.4, 1.0]), student=np.log(S), keep=True
    )
    np.testing.assert_allclose(np.exp(lists.log_t), [0.1, 0.4, 0.0])
    np.testing.assert_allclose(np.exp(lists.log_s), [0.12, 0.45, 0.0])
    assert lists.inside.tolist() == [True, False, True, False, False, False, False]
    teacher, student = map(np.exp, with_bucket(lists, needs_teacher=False))
    np.testing.assert_allclose([teacher[3], student[3]], [0.5, 0.43])
    np.testing.assert_allclose(np.exp(renormalized(lists)[0]), [0.2, 0.8, 0.0])
    assert log_softmax(lists.student).shape == (7,)
