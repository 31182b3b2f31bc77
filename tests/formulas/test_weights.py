"""Weighted formulas where a weight or a ratio is zero or infinite; claims are in tests/laws."""

from __future__ import annotations

import numpy as np
import pytest

from kullback.formulas.weights import control, weighted_k1, weighted_k2, weighted_k3

INF, NAN = np.inf, np.nan
FORMULAS = [weighted_k1, weighted_k2, weighted_k3]


@pytest.mark.parametrize("formula", FORMULAS)
def test_an_impossible_token_of_p_weighs_nothing_unless_q_has_mass(formula) -> None:
    alone = formula(log_p=-INF, log_q=np.log(0.3), log_sampler=np.log(0.6))
    assert np.isclose(alone, 0.5 if formula is weighted_k3 else 0.0, rtol=1e-15)
    assert formula(log_p=-INF, log_q=-INF, log_sampler=-1.0) == 0
    assert formula(log_p=-2.0, log_q=-INF, log_sampler=-1.0) == INF
    assert np.isnan(formula(log_p=NAN, log_q=-1.0, log_sampler=-1.0))
    assert np.isnan(formula(log_p=-1.0, log_q=NAN, log_sampler=-1.0))


@pytest.mark.parametrize("formula", FORMULAS)
def test_an_infinity_survives_a_weight_that_underflows(formula) -> None:
    assert formula(log_p=-800.0, log_q=-INF, log_sampler=-1.0) == INF
    assert formula(log_p=0.0, log_q=0.0, log_sampler=-800.0) == 0  # inf * 0


def test_weighted_k3_stays_finite_where_r_overflows() -> None:
    # q/s - p/s - (p/s) log(q/p): r = e^790 does not exist as a float, q/s = e^-9 does.
    value = weighted_k3(log_p=-800.0, log_q=-10.0, log_sampler=-1.0)
    assert np.isclose(value, np.exp(-9.0), rtol=1e-15)
    p, one = np.array([-110], dtype=np.float32), np.array([-1], dtype=np.float32)
    single = weighted_k3(log_p=p, log_q=one, log_sampler=one)
    assert single.dtype == np.float32
    assert single == 1


def test_weighted_k3_has_no_step_where_q_begins_to_stand_alone() -> None:
    below, above = (
        weighted_k3(log_p=-1.0 - x, log_q=-1.0, log_sampler=-2.0)
        for x in (45.0, np.nextafter(45.0, 46))
    )
    assert np.isclose(below, above, rtol=1e-15)


def test_weighted_formulas_against_their_definitions() -> None:
    p, q, s = np.array([0.2, 0.5]), np.array([0.3, 0.1]), np.array([0.6, 0.4])
    logs = {"log_p": np.log(p), "log_q": np.log(q), "log_sampler": np.log(s)}
    log_r = np.log(q / p)
    assert np.allclose(weighted_k1(**logs), -p / s * log_r, rtol=1e-14)
    assert np.allclose(weighted_k2(**logs), p / s * log_r**2 / 2, rtol=1e-14)
    assert np.allclose(weighted_k3(**logs), q / s - p / s - p / s * log_r, rtol=1e-14)
    assert np.allclose(control(log_target=np.log(q), log_sampler=np.log(s)), q / s - 1, rtol=1e-14)


def test_half_precision_is_computed_in_float32() -> None:
    half = np.array([-1], dtype=np.float16)
    logs = {"log_p": half, "log_q": half, "log_sampler": half}
    assert all(formula(**logs).dtype == np.float32 for formula in FORMULAS)
    assert control(log_target=half, log_sampler=half).dtype == np.float32


def test_control_of_an_impossible_target_is_minus_one() -> None:
    assert control(log_target=-INF, log_sampler=-1.0) == -1
    assert control(log_target=0.0, log_sampler=-800.0) == INF
