"""The shape of categorical pairs: its theorem, its moments, and when it does not exist."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kullback.formulas.categorical import log_softmax
from kullback.formulas.shape import best_control, shape

prove = settings(derandomize=True, max_examples=100, deadline=None, database=None)
rows = st.lists(st.floats(-5, 5), min_size=4, max_size=4).map(lambda z: np.exp(log_softmax(z)))


@prove
@given(rows, rows)
def test_s_decides_between_k1_and_k3(p: np.ndarray, q: np.ndarray) -> None:
    pair = shape(p, q)
    assume(pair.reason == "" and abs(pair.S - 1) > 1e-6)
    assert (pair.variance_k3 < pair.variance_k1) == (pair.S < 1)
    assert np.isclose(pair.S, 1 / (2 * pair.lambda_star), rtol=1e-12)


@prove
@given(rows, rows, st.floats(-2, 3))
def test_variance_of_k_lambda_is_the_parabola(p: np.ndarray, q: np.ndarray, lam: float) -> None:
    pair = shape(p, q)
    assume(pair.jeffreys > 1e-3)  # nearer, Q - P = 1e-16 is no longer nothing beside log r
    log_r = np.log(q) - np.log(p)
    values = -log_r + lam * (q / p - 1)
    variance = np.sum(p * (values - np.sum(p * values)) ** 2)
    parabola = pair.variance_k1 - 2 * lam * pair.jeffreys + lam**2 * pair.chi2_qp
    scale = 1e-12 * (pair.variance_k1 + lam**2 * pair.chi2_qp)
    assert abs(variance - parabola) <= scale
    assert pair.variance_k_lambda <= variance + scale
    lowest = pair.variance_k1 - pair.jeffreys**2 / pair.chi2_qp
    assert abs(pair.variance_k_lambda - lowest) <= 1e-12 * pair.variance_k1
    assert np.isclose(pair.mean_k2, (pair.variance_k1 + pair.kl_pq**2) / 2, rtol=1e-12)


def test_a_pair_with_two_distinct_ratios_has_an_estimator_without_noise() -> None:
    pair = shape([0.001, 0.4995, 0.4995], [0.1, 0.45, 0.45])
    assert pair.S > 10
    assert 0 <= pair.variance_k_lambda < 1e-28


def test_one_pair_gives_plain_floats_and_many_give_arrays() -> None:
    p, q = [0.5, 0.3, 0.2], [0.4, 0.4, 0.2]
    one, many = shape(p, q), shape([p, q], [q, p])
    assert type(one.S) is float
    assert isinstance(many.S, np.ndarray)
    assert many.S.shape == (2,)
    assert many.S[0] == one.S
    assert many.reason == ""


def test_p_outside_q() -> None:
    pair = shape([0.5, 0.4, 0.1], [0.6, 0.4, 0.0])
    assert pair.reason == "q has no mass where p has some, KL(p||q) is infinite"
    assert pair.kl_pq == pair.jeffreys == np.inf
    assert np.isclose(pair.chi2_qp, 0.01 / 0.5 + 0.1, rtol=1e-14)
    missing = (pair.variance_k1, pair.variance_k2, pair.variance_k3, pair.lambda_star, pair.S)
    assert np.all(np.isnan(missing))
    assert np.isnan(pair.variance_k_lambda)


def test_q_outside_p_leaves_the_moments_of_k1_and_k3() -> None:
    pair = shape([0.6, 0.4, 0.0], [0.5, 0.3, 0.2])
    assert pair.reason == "q has mass where p has none, r - 1 does not have mean zero"
    assert pair.kl_qp == pair.chi2_qp == np.inf
    log_r = np.log([0.5 / 0.6, 0.3 / 0.4])
    assert np.isclose(pair.variance_k1, 0.6 * 0.4 * (log_r[0] - log_r[1]) ** 2, rtol=1e-12)
    assert np.isnan([pair.lambda_star, pair.S, pair.variance_k_lambda]).all()


def test_equal_pairs_and_many_reasons() -> None:
    p = [0.5, 0.3, 0.2]
    equal = shape(p, p)
    assert equal.reason == "p and q are equal, both estimators are exact"
    assert equal.variance_k1 == equal.variance_k3 == equal.chi2_qp == 0
    many = shape([p, p, [0.5, 0.5, 0.0]], [p, [0.5, 0.5, 0.0], p])
    assert many.reason.count("1 of 3 rows") == 3
    assert np.isnan(many.S).all()


def test_a_shared_hole_changes_nothing() -> None:
    pair, holed = shape([0.6, 0.4], [0.7, 0.3]), shape([0.6, 0.4, 0.0], [0.7, 0.3, 0.0])
    assert pair == holed


def test_best_control_where_chi2_alone_is_infinite() -> None:
    lambda_star, s, reason = best_control(np.array(1.0), np.array(1.0), np.array(np.inf))
    assert lambda_star == 0
    assert s == np.inf
    assert reason == ""


def test_rows_that_are_no_distribution_are_named() -> None:
    with pytest.raises(ValueError, match=r"q, row 1 has the sum 0\.9,"):
        shape([[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.4]])


def test_gaussians_come_as_objects_of_either_library() -> None:
    torch = pytest.importorskip("torch").distributions
    stats = pytest.importorskip("scipy.stats")
    for pair in (
        (stats.norm(0, 2), stats.norm(0.5, 2)),
        (torch.Normal(0.0, 2.0), torch.Normal(0.5, 2.0)),
    ):
        found = shape(*pair)  # m = 1/4
        assert found.kl_pq == pytest.approx(1 / 32)
        assert found.variance_k1 == pytest.approx(1 / 16)
        assert found.variance_k3 == pytest.approx(np.expm1(1 / 16) - 1 / 16)
    outcomes = shape(stats.bernoulli(0.3), stats.bernoulli(0.5))
    assert pytest.approx(shape([0.7, 0.3], [0.5, 0.5]).S) == outcomes.S
    for p, q in (
        (torch.Normal(0.0, 1.0), torch.Laplace(0.0, 1.0)),
        (stats.norm(0, 1), stats.bernoulli(0.5)),
        (stats.multivariate_normal([0, 0]), stats.multivariate_normal([1, 0])),
    ):
        with pytest.raises(ValueError, match="no closed form of the shape is known for"):
            shape(p, q)
