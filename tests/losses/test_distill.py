"""`kb.distill` from whole rows, lists and samples: one number in three libraries, masked first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.arrays import to_numpy
from kullback.losses.distill_terms import CLAIMS

from .plain import VALUES, in_logits, softmax

SHAPE = (3, 4, 6)  # sequences, tokens, vocabulary
_RNG = np.random.default_rng(0)
STUDENT, TEACHER = _RNG.normal(size=SHAPE), 2 * _RNG.normal(size=SHAPE)
T, S = softmax(TEACHER), softmax(STUDENT)
MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
IDS = np.argsort(-TEACHER, axis=-1)[..., :2]
LOG_T = np.log(np.take_along_axis(T, IDS, axis=-1))
SHARED = [name for name, claim in CLAIMS.items() if claim.at_0]


def share(name: str) -> dict[str, Any]:
    return {"order" if name == "alpha" else "weight": 0.3} if name in SHARED else {}


FORMS: dict[str, dict[str, Any]] = {
    **{name: {"divergence": name, **share(name)} for name in ("KL(student||teacher)", "jsd")},
    "alpha": {"divergence": "alpha", "order": 0.3},
    "warm": {"temperature": 2.5, "times_t_squared": True, "divergence": "jsd", "weight": 0.3},
    "of log-probs": {},
    "warm of log-probs": {"temperature": 2.5},
    "top k": {"divergence": "alpha", "order": 0.7},
    "top k, renormalized": {"tail": "renormalized", "biased": True},
    "top k, dropped": {"tail": "dropped", "biased": True, "divergence": "KL(student||teacher)"},
    "samples": {},
    "samples of a proposal": {},
}
SOME = ["alpha", "warm of log-probs", "top k", "samples of a proposal"]


def loss(form: str, **more: Any) -> Any:
    """A function of the arrays of `given`, the student's first."""
    options = FORMS[form] | more

    def value(student: Any, teacher: Any, *rest: Any) -> Any:
        log_probs = "log-probs" in form
        rows = {"student_log_probs" if log_probs else "student_logits": student}
        if "top" in form:
            rows["teacher_top"] = (rest[0], teacher)
        elif "samples" in form:
            rows["teacher_samples"] = (rest[0], teacher)
            if "proposal" in form:
                rows["log_proposal"] = rest[1]
        else:
            rows["teacher_log_probs" if log_probs else "teacher_logits"] = teacher
        return kb.distill(**rows, **options)

    return value


def given(form: str, library: Any, dtype: str = "float64") -> list[Any]:
    if "log-probs" in form:
        return [library.array(np.log(one), dtype) for one in (S, T)]
    arrays = [library.array(STUDENT, dtype)]
    if "top" not in form and "samples" not in form:
        return [*arrays, library.array(TEACHER, dtype)]
    ids = library.array(IDS, "int32")
    return [*arrays, library.array(LOG_T, dtype), ids, library.array(0.5 * LOG_T - 1, dtype)]


class NumPy:
    name = "numpy"

    @staticmethod
    def array(values: Any, dtype: str = "float64") -> Any:
        return np.asarray(values, dtype=dtype)


def values(found: Any) -> Any:
    return to_numpy(found, "found").astype(np.float64)


def near(found: Any, expected: Any, rtol: float = 1e-12, atol: float = 1e-15) -> None:
    np.testing.assert_allclose(values(found), values(expected), rtol=rtol, atol=atol)


forms = pytest.mark.parametrize("form", FORMS)
some = pytest.mark.parametrize("form", SOME)
JUNK = [np.nan, -np.inf, np.inf, 1e30, -1e30]


def spoiled(form: str, junk: float) -> list[Any]:
    """The arrays with junk at every position that does not count."""
    out, arrays = MASK[..., None] == 0, given(form, NumPy)
    return [np.where(out, -77 if "int" in str(x.dtype) else junk, x) for x in arrays]


@forms
def test_in_one_graph_it_is_numpys_with_its_slope_and_blind_to_what_is_masked(form, traceable):
    mask = traceable.array(MASK, "int32")

    def both(*arrays: Any) -> Any:
        each = loss(form, mask=mask, aggregate="none")(*arrays)
        return each, traceable.gradient(loss(form, mask=mask))(*arrays)[0]

    both = traceable.traced(both)
    each, slope = map(values, both(*given(form, traceable)))
    start, *rest = given(form, NumPy)
    near(each, loss(form, mask=MASK, aggregate="none")(start, *rest))
    assert (each[MASK == 0] == 0).all()
    assert (slope[MASK == 0] == 0).all()
    way = np.random.default_rng(1).normal(size=SHAPE)
    if "log-probs" in form:  # along which the rows stay rows of log-probs
        way = in_logits(way, S) / S
    there, back = (loss(form, mask=MASK)(start + step * way, *rest) for step in (1e-5, -1e-5))
    assert np.sum(slope * way) == pytest.approx((there - back) / 2e-5, rel=1e-7, abs=1e-9)
    kinds = [str(one.dtype) for one in given(form, NumPy)]
    for junk in JUNK:
        arrays = [traceable.array(*one) for one in zip(spoiled(form, junk), kinds, strict=True)]
        for found, expected in zip(both(*arrays), (each, slope), strict=True):
            np.testing.assert_array_equal(values(found), expected)


@some
def test_vmap_gives_what_a_loop_gives(form: str, traceable) -> None:
    function = loss(form, aggregate="token_mean")
    arrays = given(form, traceable)
    batched = traceable.in_one_piece(traceable.batched(function))(*arrays)
    plain = given(form, NumPy)
    near(batched, [function(*(one[i] for one in plain)) for i in range(SHAPE[0])])


@some
def test_half_precision_is_computed_as_float32(form: str, traceable) -> None:
    function = traceable.in_one_piece(loss(form))
    half = given(form, traceable, "bfloat16")
    wide = [
        traceable.array(values(one), "float32") if "int" not in str(one.dtype) else one
        for one in half
    ]
    found = function(*half)
    assert str(found.dtype).removeprefix("torch.") == "float64"
    assert values(found) == values(function(*wide))


def test_jax_without_float64_keeps_to_float32() -> None:
    jax = pytest.importorskip("jax")

    class Single:
        name = "jax"

        @staticmethod
        def array(values: Any, dtype: str = "float32") -> Any:
            return jax.numpy.array(values, dtype=dtype.replace("64", "32"))

    for form in SOME:
        found = jax.jit(loss(form))(*given(form, Single))
        assert found.dtype == np.float32, form
        near(found, loss(form)(*given(form, NumPy)), rtol=2e-5, atol=1e-6)


def test_the_teacher_has_no_gradient(traceable) -> None:
    for form in SOME:
        slope = traceable.gradient(loss(form), (0, 1))
        student, teacher = traceable.in_one_piece(slope)(*given(form, traceable))
        assert np.abs(values(student)).max() > 1e-3
        assert (values(teacher) == 0).all()


def test_the_aggregates(library) -> None:
    arrays, mask = given("jsd", library), library.array(MASK, "int32")
    nothing = library.array(np.zeros((3, 4)), "int32")

    def every(*rows: Any) -> Any:
        flat = [one.reshape(12, 6) for one in rows]
        return (
            loss("jsd")(*rows),
            loss("jsd", aggregate="sequence_sum")(*rows),
            loss("jsd", mask=mask)(*rows),
            loss("jsd", mask=mask, aggregate="sequence_sum")(*rows),
            loss("jsd", mask=mask.reshape(12))(*flat),
            loss("jsd", mask=nothing)(*rows),
        )

    plain = VALUES[CLAIMS["jsd"].value](T, S, 0.3)
    counted = plain[MASK == 1]
    found = [float(one) for one in library.in_one_piece(every)(*arrays)]
    # Of the third sequence nothing counts.
    expected = [plain.mean(), plain.sum() / 3, counted.mean(), counted.sum() / 2, counted.mean()]
    near(np.array(found[:5]), np.array(expected))
    assert np.isnan(found[5])


def test_temperature_divides_both_and_the_square_makes_up_for_it() -> None:
    for name in CLAIMS:
        rows = {"student_logits": STUDENT, "teacher_logits": TEACHER, "divergence": name}
        plain = VALUES[CLAIMS[name].value](softmax(TEACHER / 2.5), softmax(STUDENT / 2.5), 0.3)
        warm = kb.distill(**rows, **share(name), temperature=2.5)
        assert warm == pytest.approx(plain.mean(), rel=1e-12)
        squared = kb.distill(**rows, **share(name), temperature=2.5, times_t_squared=True)
        assert squared == pytest.approx(6.25 * warm, rel=1e-15)
        log_probs = kb.distill(
            student_log_probs=np.log(S), teacher_log_probs=np.log(T), divergence=name,
            temperature=2.5, **share(name),
        )  # fmt: skip
        assert log_probs == pytest.approx(warm, rel=1e-12)


def test_the_gradient_shrinks_like_one_over_t_squared(traceable) -> None:
    """Hinton 2015: (1/N T^2) (z - v), of logits whose rows have mean 0; T^2 makes it stand."""
    z, v = (row - row.mean(axis=-1, keepdims=True) for row in (STUDENT, TEACHER))
    arrays = traceable.array(z), traceable.array(v)
    for times_t_squared, expected in ((False, (z - v) / 1e8 / 6), (True, (z - v) / 6)):
        function = loss(
            "jsd",
            divergence="KL(teacher||student)",
            weight=None,
            temperature=1e4, times_t_squared=times_t_squared, aggregate="sequence_sum",
        )  # fmt: skip
        found = values(traceable.in_one_piece(traceable.gradient(function))(*arrays)[0])
        np.testing.assert_allclose(3 * found, expected, atol=2e-3 * np.abs(expected).max())


def test_equal_rows_are_0_and_nearly_equal_ones_not_below_in_float32(library) -> None:
    z = library.array(STUDENT * 5, "float32")
    nearly = library.array(STUDENT * 5 * (1 + 1e-6), "float32")

    def every(student: Any) -> Any:
        rows = {"student_logits": student, "teacher_logits": z, "aggregate": "none"}
        return [kb.distill(**rows, divergence=name, **share(name)) for name in CLAIMS]

    every = library.in_one_piece(every)
    assert all((values(found) == 0).all() for found in every(z))
    assert all((values(found) >= 0).all() for found in every(nearly))


ROWS: dict[str, Any] = {"student_logits": STUDENT, "teacher_logits": TEACHER}
TOP: dict[str, Any] = {"student_logits": STUDENT, "teacher_top": (IDS, LOG_T)}
DRAWN: dict[str, Any] = {"student_logits": STUDENT, "teacher_samples": IDS}
REFUSED = [
    (ROWS | {"divergence": "kl"}, "divergence 'kl' is none of KL"),
    (ROWS | {"divergence": "jsd"}, "weight=None: jsd needs weight= from 0 to 1"),
    (ROWS | {"divergence": "jsd", "weight": 1.5}, "weight=1.5: jsd needs"),
    (ROWS | {"divergence": "alpha", "order": float("nan")}, "order=nan: alpha needs order="),
    (ROWS | {"divergence": "alpha", "weight": 0.5}, "weight=0.5, order=None: alpha takes order"),
    (ROWS | {"weight": 0.5}, r"KL\(teacher\|\|student\) takes neither of the two"),
    (ROWS | {"temperature": 0.0}, "temperature=0.0: expected a number above 0"),
    (ROWS | {"temperature": float("inf")}, "temperature=inf: expected"),
    (TOP | {"temperature": 2.0}, "temperature=2.0 with teacher_top.*leave temperature=1"),
    (DRAWN | {"temperature": 2.0}, "temperature=2.0 with teacher_samples"),
    (DRAWN | {"divergence": "KL(student||teacher)"}, "only KL.teacher.*is linear in the teacher"),
    (ROWS | {"teacher_entropy": MASK}, "go with teacher_samples only"),
    (ROWS | {"log_proposal": MASK}, "go with teacher_samples only"),
    (TOP | {"tail": "cut"}, "tail 'cut' is none of bucket, renormalized, dropped"),
    (TOP | {"tail": "dropped"}, "tail='dropped', biased=False: .*say biased=True"),
    (TOP | {"biased": True}, "tail='bucket', biased=True"),
    (ROWS | {"tail": "dropped", "biased": True}, "teacher_logits leaves no tail out"),
    (
        TOP | {"tail": "dropped", "biased": True, "divergence": "jsd", "weight": 0.5},
        "for the two KLs only, not for jsd",
    ),
    (ROWS | {"aggregate": "mean"}, "aggregate 'mean' is none of token_mean"),
    (ROWS | {"mask": MASK[0]}, r"the mask has shape \(4,\), student_logits \(3, 4, 6\)"),
    (ROWS | {"mask": 0.5 * MASK}, "other values than 0 and 1"),
    (ROWS | {"mask": 0.5 * MASK, "aggregate": "none"}, "other values than 0 and 1"),
    (ROWS | {"teacher_logits": TEACHER[..., :5]}, r"teacher has shape \(3, 4, 5\).*one vocabulary"),
    (
        {"student_logits": STUDENT[0], "teacher_logits": TEACHER[0], "aggregate": "sequence_sum"},
        r"sequence_sum of positions \(4,\): expected \[sequences, tokens\]",
    ),
    ({"student_logits": 1.0, "teacher_logits": 1.0}, "student_logits is one number"),
    (
        {"student_log_probs": S, "teacher_logits": TEACHER},
        "student_log_probs, row 0 has probabilities that sum to",
    ),
    (
        {"student_logits": STUDENT, "teacher_log_probs": TEACHER},
        "teacher_log_probs, row 0 has probabilities that sum to",
    ),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_meant_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        kb.distill(**arguments)


def test_each_side_is_given_in_one_form() -> None:
    with pytest.raises(TypeError, match=r"expected one of teacher_logits, .* got none"):
        kb.distill(student_logits=STUDENT)
    with pytest.raises(TypeError, match="got student_logits and student_log_probs: give the stu"):
        kb.distill(**ROWS, student_log_probs=S)
    with pytest.raises(TypeError, match="got teacher_logits and teacher_samples"):
        kb.distill(**ROWS, teacher_samples=IDS)


def test_a_mask_that_is_no_mask_is_nan_where_it_cannot_be_refused(traceable) -> None:
    mask = traceable.array(0.5 * MASK)
    found = traceable.in_one_piece(loss("jsd", mask=mask))(*given("jsd", traceable))
    assert np.isnan(values(found))


def test_the_bars_may_be_one_sign() -> None:
    assert kb.distill(**ROWS, divergence="KL(teacher‖student)") == kb.distill(**ROWS)
