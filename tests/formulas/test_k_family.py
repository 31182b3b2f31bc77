"""The k family at its edges; its claims and its accuracy are proved in tests/laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kullback.formulas.k_family import f_form, k1, k2, k3, k_lambda, other_direction

INF, NAN = np.inf, np.nan
EDGES = np.array([-INF, -1e300, -1.0, 0.0, 1.0, 1e300, INF, NAN])
E1 = np.exp(1.0)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (k1, [INF, 1e300, 1.0, 0.0, -1.0, -1e300, -INF, NAN]),
        (k2, [INF, INF, 0.5, 0.0, 0.5, INF, INF, NAN]),
        (k3, [INF, 1e300, 1 / E1, 0.0, E1 - 2, INF, INF, NAN]),
        (lambda x: k_lambda(x, 0.0), [INF, 1e300, 1.0, 0.0, -1.0, -1e300, -INF, NAN]),
        (lambda x: k_lambda(x, 0.5), [INF, 1e300, 0.5 + 0.5 / E1, 0, E1 / 2 - 1.5, INF, INF, NAN]),
        (lambda x: k_lambda(x, -1.0), [INF, 1e300, 2 - 1 / E1, 0.0, -E1, -INF, -INF, NAN]),
        (lambda x: k_lambda(x, 2.0), [INF, 1e300, 2 / E1 - 1, 0.0, 2 * E1 - 3, INF, INF, NAN]),
        (other_direction, [1.0, 1.0, 1 - 2 / E1, 0.0, 1.0, INF, INF, NAN]),
        (
            lambda x: f_form(x, lambda r: (r - 1) ** 2, 0.0),
            [1.0, 1.0, (1 / E1 - 1) ** 2, 0.0, (E1 - 1) ** 2, INF, INF, NAN],
        ),
    ],
)
def test_values_at_the_edges(formula: Callable[[Any], Any], expected: list[float]) -> None:
    assert np.allclose(formula(EDGES), expected, rtol=1e-14, atol=1e-15, equal_nan=True)


def test_zero_is_exactly_zero_and_positive() -> None:
    for formula in (k1, k2, k3, other_direction):
        for zero in (0.0, -0.0):
            assert formula(zero) == 0
            assert not np.signbit(formula(zero))


@pytest.mark.parametrize("formula", [k1, k2, k3, lambda x: k_lambda(x, 0.5), other_direction])
def test_half_precision_and_integers(formula: Callable[[Any], Any]) -> None:
    half = np.array([-0.5, -0.01, 0.25], dtype=np.float16)
    assert formula(half).dtype == np.float32
    assert np.array_equal(formula(half), formula(half.astype(np.float32)))
    assert formula(half.astype(np.float32)).dtype == np.float32
    assert formula(-2) == formula(-2.0)
    assert formula([-2, 1])[0] == formula(-2.0)


@pytest.mark.parametrize("formula", [k3, other_direction, k2])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_never_negative_for_any_finite_input(formula: Callable[[Any], Any], dtype: Any) -> None:
    @settings(derandomize=True, max_examples=50, deadline=None, database=None)
    @given(hnp.arrays(dtype, 8, elements=hnp.from_dtype(np.dtype(dtype), allow_nan=False)))
    def holds(log_q_over_p: np.ndarray) -> None:
        assert np.all(formula(log_q_over_p) >= 0)

    holds()


def test_overflow_and_underflow_are_silent_whatever_the_caller_set() -> None:
    with np.errstate(all="raise"):
        assert np.array_equal(k3([800.0, -INF, 1e-200, -1e300]), [INF, INF, 0.0, 1e300])
        assert np.array_equal(other_direction([800.0, -800.0]), [INF, 1.0])
        assert np.array_equal(k2([1e200, 1e-200]), [INF, 0.0])
        assert k3(np.array([89], dtype=np.float32)) == INF
        assert np.geterr()["over"] == "raise"


@settings(derandomize=True, max_examples=200, deadline=None, database=None)
@given(st.floats(-600, 600), st.floats(-3, 3))
def test_k_lambda_lies_between_k1_and_k3(log_q_over_p: float, lam: float) -> None:
    mixture = lam * k3(log_q_over_p) + (1 - lam) * k1(log_q_over_p)
    scale = max(abs(lam * k3(log_q_over_p)), abs((1 - lam) * k1(log_q_over_p)))
    assert abs(k_lambda(log_q_over_p, lam) - mixture) <= 1e-14 * scale


def test_k_lambda_takes_one_lam_per_sample() -> None:
    values = k_lambda([-1.0, -1.0], np.array([0.0, 1.0]))
    assert np.array_equal(values, [k1(-1.0), k3(-1.0)])


@settings(derandomize=True, max_examples=200, deadline=None, database=None)
@given(st.floats(-20, 20))
def test_f_form_contains_k3_and_the_other_direction(log_q_over_p: float) -> None:
    as_k3 = f_form(log_q_over_p, lambda r: -np.log(r), slope_at_one=-1.0)
    as_other = f_form(log_q_over_p, lambda r: r * np.log(r), slope_at_one=1.0)
    assert np.isclose(as_k3, k3(log_q_over_p), rtol=1e-12, atol=1e-14)
    assert np.isclose(as_other, other_direction(log_q_over_p), rtol=1e-12, atol=1e-14)


def test_f_form_is_nan_where_f_and_its_tangent_are_both_infinite() -> None:
    assert np.isnan(f_form(INF, lambda r: r**2 - 1, slope_at_one=2.0))
