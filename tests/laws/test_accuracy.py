"""How many units in the last place the formulas are off, against mpmath at 50 digits."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.arrays import to_numpy
from kullback.formulas.k_family import k3, k_lambda, other_direction

from .laws import LOG_R, is_within, ulps
from .wrong_twins import exact_k3

# From 1 to 2, where neither the series nor the plain difference is at its best.
SEAM = np.concatenate([sign * np.linspace(0.9, 2.0, 1000) for sign in (-1.0, 1.0)])
POINTS = np.concatenate([LOG_R, SEAM])
anywhere = st.floats(1e-12, 700) | st.floats(-700, -1e-12)
seek = settings(derandomize=True, max_examples=200, deadline=None, database=None)


def exact_other_direction(log_r: Any) -> Any:
    return log_r * mpmath.exp(log_r) - mpmath.expm1(log_r)


@pytest.mark.parametrize(("dtype", "most"), [("float64", 4), ("float32", 3)])
def test_k3_is_within_a_few_ulp_in_every_library(dtype: str, most: int, library) -> None:
    def own_k3(log_r: Any) -> Any:
        return to_numpy(k3(library.array(log_r, dtype)), "k3")

    assert is_within(most, exact_k3, own_k3, dtype=np.dtype(dtype).type, log_r=POINTS)


@pytest.mark.parametrize(("dtype", "most"), [("float64", 4), ("float32", 3)])
def test_k3_is_as_exact_when_it_is_compiled(dtype: str, most: int, traceable) -> None:
    compiled = traceable.traced(k3)

    def own_k3(log_r: Any) -> Any:
        return to_numpy(compiled(traceable.array(log_r, dtype)), "k3")

    assert is_within(most, exact_k3, own_k3, dtype=np.dtype(dtype).type, log_r=POINTS)


@seek
@given(log_r=anywhere)
def test_k3_is_within_4_ulp_at_any_float64(log_r: float) -> None:
    with mpmath.workdps(50):
        assert ulps(k3(log_r), exact_k3(mpmath.mpf(log_r))) <= 4


@seek
@given(log_r=st.floats(2.0**-40, 88, width=32) | st.floats(-700, -(2.0**-40), width=32))
def test_k3_is_within_3_ulp_at_any_float32(log_r: float) -> None:
    with mpmath.workdps(50):
        value = k3(np.array([log_r], dtype=np.float32))[0]
        assert ulps(value, exact_k3(mpmath.mpf(log_r))) <= 3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_k_lambda_is_k3_at_1_to_the_last_bit(dtype: Any) -> None:
    points = POINTS.astype(dtype)
    assert np.array_equal(k_lambda(points, 1.0), k3(points))
    assert np.array_equal(k_lambda(points, np.ones_like(points)), k3(points))


@pytest.mark.parametrize("lam", [-0.5, 0.3, 0.99, 2.5])
def test_k_lambda_is_within_4_ulp_of_its_larger_term(lam: float) -> None:
    with mpmath.workdps(50):
        for point in SEAM:
            x = mpmath.mpf(float(point))
            exact = -x + lam * mpmath.expm1(x)
            scale = max(abs(float(x)), abs(float(lam * mpmath.expm1(x))))
            assert abs(float(k_lambda(point, lam) - exact)) <= 4 * np.spacing(scale)


def test_other_direction_is_within_6_ulp() -> None:
    assert is_within(6, exact_other_direction, other_direction, log_r=POINTS)
