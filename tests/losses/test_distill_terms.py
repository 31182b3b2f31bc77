"""Each divergence is the one it is named after, at its ends and near them, and so is its slope."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kullback.arrays import to_numpy
from kullback.formulas.categorical import log_softmax
from kullback.losses.distill_terms import CLAIMS, log_mixture, settled, terms

from .plain import ENDS, SHARES, SLOPES, VALUES, S, T, gradient, in_logits, softmax

SHARED = [name for name, claim in CLAIMS.items() if claim.at_0]
EVERY = [(name, share) for name in CLAIMS for share in (SHARES if name in SHARED else (None,))]
each = pytest.mark.parametrize(("name", "share"), EVERY)
shared = pytest.mark.parametrize("name", SHARED)


def value(name: str, share: float | None, t: Any, s: Any) -> Any:
    with np.errstate(divide="ignore"):
        log_t, log_s = np.log(t), np.log(s)
    return np.sum(terms(name, share)(log_t, log_s), axis=-1)


def near(found: Any, expected: Any, rel: float = 1e-12, abs: float = 1e-15) -> None:
    found = to_numpy(found, "found").astype(float)
    np.testing.assert_allclose(found, expected, rtol=rel, atol=abs)


@each
def test_the_value_is_the_claimed_one(name: str, share: float | None) -> None:
    near(value(name, share, T, S), VALUES[CLAIMS[name].value](T, S, share), abs=1e-14)


@each
def test_the_slope_is_the_claimed_one_and_that_of_the_plain_formula(name, share) -> None:
    claim = CLAIMS[name]
    plain = gradient(lambda z: VALUES[claim.value](T, softmax(z), share), np.log(S))
    near(plain, in_logits(SLOPES[claim.slope](T, S, share), S), abs=1e-14)


@shared
@pytest.mark.parametrize("end", [0, 1])
def test_the_ends_are_the_claimed_ones_and_are_approached(name: str, end: int) -> None:
    exact = ENDS[(CLAIMS[name].at_0, CLAIMS[name].at_1)[end]](T, S)
    near(value(name, end, T, S), exact)
    steepest = np.max(T**2 / S + S**2 / T)  # a chi-square, where one side has a hole
    for step in (1e-4, 1e-6, 1e-9, 1e-12, 1e-300):
        slack = steepest * step * np.log(1 / step)
        near(value(name, abs(end - step), T, S), exact, rel=0, abs=slack + 1e-15)


WAY = (0, 1e-300, 1e-9, 0.01, 0.5, 0.99, 1 - 1e-9, 1 - 2**-53, 1)


@pytest.mark.parametrize("name", CLAIMS)
def test_autodiff_gives_the_claimed_gradient_and_those_of_the_ends(name, traceable) -> None:
    shares, claim = WAY if name in SHARED else (None,), CLAIMS[name]

    def gradients(log_t: Any, logits: Any) -> Any:
        of = [lambda z, w=w: terms(name, w)(log_t, log_softmax(z)).sum() for w in shares]
        return [traceable.gradient(one)(logits)[0] for one in of]

    found = traceable.in_one_piece(gradients)(*map(traceable.array, np.log([T, S])))
    for w, slope in zip(shares, found, strict=True):
        if w is None or 0.001 < w < 0.999:
            near(slope, in_logits(SLOPES[claim.slope](T, S, w), S), abs=1e-14)
            continue
        end = ENDS[claim.at_0 if w < 0.5 else claim.at_1]
        exact = gradient(lambda z, end=end: end(T, softmax(z)), np.log(S))
        near(slope, exact, abs=1e-14 if w in (0, 1) else 1e-5)


def test_an_end_that_is_a_kl_is_that_kl() -> None:
    assert settled("skew KL(teacher||student)", 0) == ("KL(teacher||student)", None)
    assert settled("skew KL(teacher||student)", 1) == ("skew KL(teacher||student)", 1)
    assert settled("KL(student||teacher)", None) == ("KL(student||teacher)", None)


LOGITS = st.lists(st.floats(-30, 30), min_size=4, max_size=4)


@pytest.mark.parametrize("name", CLAIMS)
@given(t=LOGITS, s=LOGITS, share=st.floats(0, 1), scale=st.sampled_from([1, 1e-3, 1e-6]))
def test_no_term_is_negative_in_float32(name, t, s, share, scale) -> None:
    """Not only apart: students within rounding of the teacher, where T log(T/S) cancels."""
    log_t = log_softmax(np.float32(t))
    log_s = log_softmax(np.float32(t) + np.float32(scale) * np.float32(s))
    of = terms(name, share if name in SHARED else None)
    assert (of(log_t, log_s) >= 0).all()
    assert (of(log_t, log_t) == 0).all()


@pytest.mark.parametrize("name", CLAIMS)
@given(t=LOGITS, s=LOGITS, share=st.floats(1e-3, 0.999))
def test_the_value_is_that_of_fifty_digits(name, t, s, share) -> None:
    """Where the plain formula has no digits left, too."""
    log_t, log_s = log_softmax(np.array(t)), log_softmax(np.array(t) + 1e-3 * np.array(s))
    found = np.sum(terms(name, share if name in SHARED else None)(log_t, log_s))
    with mpmath.workdps(50):
        rows = []
        for row in (log_t, log_s):
            raised = [mpmath.exp(mpmath.mpf(float(x))) for x in row]
            rows.append(np.array([x / sum(raised) for x in raised]))
        exact = VALUES[CLAIMS[name].value](*rows, mpmath.mpf(share))
    assert found == pytest.approx(float(exact), rel=1e-8, abs=1e-24)


HOLES = {
    "T > 0 = S": ((0.5, 0.3, 0.2), (0.6, 0.4, 0.0)),
    "S > 0 = T": ((0.6, 0.4, 0.0), (0.5, 0.3, 0.2)),
}


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("share", [0.0, 1e-6, 0.5, 1 - 1e-6, 1.0])
def test_it_is_infinite_where_it_says_so_and_only_there(name: str, share: float) -> None:
    said = CLAIMS[name].infinite_where
    for hole, (t, s) in HOLES.items():
        at = "order" if name == "alpha" else "weight"
        expected = hole in said and (
            f"at {at}" not in said
            or f"{hole} at {at} {share:g}" in said
            or f"{hole}, at {at} {share:g} only" in said
        )
        found = value(name, share if name in SHARED else None, np.array(t), np.array(s))
        assert np.isinf(found) == expected, (hole, found)


EXTREME = [0.0, -1.0, 50.0, -200.0, -1e4, -1e30, -np.inf, -np.inf]


@pytest.mark.parametrize("name", CLAIMS)
def test_the_gradient_is_finite_wherever_the_value_is_in_float32(name: str, traceable) -> None:
    of = terms(name, 0.3 if name in SHARED else None)
    teacher = np.stack([np.roll(EXTREME, shift) for shift in range(8)])
    student = np.array(EXTREME) + 0.5 * np.random.default_rng(0).normal(size=(8, 8))

    def each(z: Any, t: Any) -> Any:
        return of(log_softmax(t), log_softmax(z)).sum(-1)

    def both(z: Any, t: Any) -> Any:
        return each(z, t), traceable.gradient(lambda z, t: each(z, t).sum())(z, t)[0]

    given = traceable.array(student, "float32"), traceable.array(teacher, "float32")
    values, found = (
        to_numpy(x, "found").astype(float) for x in traceable.in_one_piece(both)(*given)
    )
    finite = np.isfinite(values)
    assert finite.all() if name in SHARED else finite.any()
    assert np.isfinite(found[finite]).all()
    assert not np.isnan(values).any()
    with np.errstate(all="ignore"):
        wide = [np.float64(to_numpy(one, "x")) for one in given]
    near(values[finite], each(*wide)[finite], rel=1e-4)


@given(x=st.floats(-50, 0), y=st.floats(-50, 0), weight=st.floats(1e-300, 1 - 2**-53))
def test_the_mixture_is_one(x: float, y: float, weight: float) -> None:
    found = log_mixture(np.array(x), np.array(y), weight)
    with mpmath.workdps(50):
        w = mpmath.mpf(weight)
        exact = mpmath.log(w * mpmath.exp(mpmath.mpf(x)) + (1 - w) * mpmath.exp(mpmath.mpf(y)))
    assert found == pytest.approx(float(exact), rel=1e-14, abs=1e-14)


def test_the_mixture_of_nothing_is_nothing() -> None:
    gone = np.array([-np.inf])
    assert log_mixture(gone, gone, 0.5)[0] == -np.inf
    near(log_mixture(gone, np.log([0.5]), 0.25), np.log([0.375]))
