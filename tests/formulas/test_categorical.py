"""Log-softmax, entropy and KL of whole categorical distributions."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.formulas.categorical import entropy, exact, lined_up, log_softmax

INF = np.inf
prove = settings(derandomize=True, max_examples=100, deadline=None, database=None)
logits = st.lists(st.floats(-30, 30), min_size=4, max_size=4)


@prove
@given(logits)
def test_log_softmax_sums_to_one_and_is_never_positive(z: list[float]) -> None:
    log_p = log_softmax(z)
    assert np.isclose(np.sum(np.exp(log_p)), 1.0, rtol=1e-14)
    assert np.all(log_p <= 0)
    assert np.allclose(np.diff(log_p), np.diff(z), rtol=1e-14, atol=1e-13)


def test_log_softmax_at_the_edges() -> None:
    assert np.array_equal(log_softmax([1e30, -1e30, -INF]), [0.0, -2e30, -INF])
    assert np.all(np.isnan(log_softmax([-INF, -INF])))
    assert log_softmax(np.zeros((2, 3), dtype=np.float16)).dtype == np.float32


def test_log_softmax_in_float32_is_off_by_its_last_place() -> None:
    z = np.random.default_rng(0).normal(0, 3, (4, 50_000)).astype(np.float32)
    error = log_softmax(z) - log_softmax(z.astype(np.float64))
    assert np.max(np.abs(error)) < 1.9e-6  # one ulp of log p = -20
    assert np.max(np.abs(np.mean(error, axis=-1))) < 3e-7


def test_entropy() -> None:
    assert entropy(log_probs=[0.0, -INF]) == 0
    assert np.isclose(entropy(logits=np.zeros(8)), np.log(8), rtol=1e-15)
    rows = entropy(log_probs=np.log([[0.5, 0.5], [0.9, 0.1]]))
    assert np.allclose(rows, [np.log(2), -0.9 * np.log(0.9) - 0.1 * np.log(0.1)], rtol=1e-14)


@prove
@given(logits, logits)
def test_exact_is_the_definition_and_never_negative(z_p: list[float], z_q: list[float]) -> None:
    log_p, log_q = log_softmax(z_p), log_softmax(z_q)
    value = exact(logits_p=z_p, logits_q=z_q)
    assert value >= 0
    assert np.isclose(value, np.sum(np.exp(log_p) * (log_p - log_q)), rtol=1e-12, atol=1e-12)
    assert value == exact(log_probs_p=log_p, log_probs_q=log_q)
    assert value == exact(logits_p=z_p, log_probs_q=log_q)
    assert exact(logits_p=z_p, logits_q=z_p) == 0


def test_exact_where_one_side_is_zero() -> None:
    p, q = np.log([0.6, 0.4, 1e-320]), np.array([np.log(0.7), np.log(0.3), -INF])
    assert exact(log_probs_p=p, log_probs_q=q) == INF
    hole = np.array([np.log(0.6), np.log(0.4), -INF])
    both = 0.6 * np.log(0.6 / 0.7) + 0.4 * np.log(0.4 / 0.3)
    assert np.isclose(exact(log_probs_p=hole, log_probs_q=q), both, rtol=1e-14)
    thirds = np.log([0.5, 0.3, 0.2])
    inside = 0.6 * np.log(0.6 / 0.5) + 0.4 * np.log(0.4 / 0.3)
    assert np.isclose(exact(log_probs_p=hole, log_probs_q=thirds), inside, rtol=1e-14)


def test_exact_keeps_its_digits_between_near_policies() -> None:
    z = np.linspace(-1, 1, 5)
    near = z + 1e-7 * np.array([1.0, -1, 2, 0, 1])
    with mpmath.workdps(50):
        p, q = ([mpmath.exp(mpmath.mpf(float(x))) for x in row] for row in (z, near))
        total_p, total_q = mpmath.fsum(p), mpmath.fsum(q)
        truth: Any = mpmath.fsum(
            a / total_p * mpmath.log(a / total_p * total_q / b) for a, b in zip(p, q, strict=True)
        )
    assert np.isclose(exact(logits_p=z, logits_q=near), float(truth), rtol=1e-7, atol=0)
    naive = np.sum(np.exp(log_softmax(z)) * (log_softmax(z) - log_softmax(near)))
    assert not np.isclose(naive, float(truth), rtol=1e-4, atol=0)  # the definition loses 12 digits


def test_an_error_in_normalization_enters_squared() -> None:
    log_p, log_q = np.log([0.5, 0.3, 0.2]), np.log([0.4, 0.4, 0.2])
    right = exact(log_probs_p=log_p, log_probs_q=log_q)
    shifted = exact(log_probs_p=log_p, log_probs_q=log_q + 1e-4)
    assert np.isclose(shifted - right, 1e-8 / 2, rtol=1e-3)


def test_exact_of_float32_keeps_what_the_definition_loses() -> None:
    z = np.random.default_rng(1).normal(0, 3, (2, 20_000)).astype(np.float32)
    moved = z + np.float32(0.01) * np.sin(np.arange(20_000, dtype=np.float32))
    value = exact(logits_p=z, logits_q=moved)
    truth = exact(logits_p=z.astype(np.float64), logits_q=moved.astype(np.float64))
    assert value.dtype == np.float64
    assert np.allclose(value, truth, rtol=2e-5, atol=0)
    log_p, log_q = log_softmax(z), log_softmax(moved)
    by_definition = np.sum(np.exp(log_p) * (log_p - log_q), axis=-1)
    assert np.max(np.abs(by_definition / truth - 1)) > 1e-4


def test_exact_says_what_it_was_not_given() -> None:
    with pytest.raises(TypeError, match="either logits_q or log_probs_q, got neither"):
        exact(logits_p=[0.0, 1.0])
    with pytest.raises(TypeError, match="either logits_p or log_probs_p, got both"):
        exact(logits_p=[0.0], log_probs_p=[0.0], logits_q=[0.0])
    with pytest.raises(TypeError, match="either logits or log_probs, got neither"):
        entropy()


def test_rows_that_do_not_line_up_are_refused() -> None:
    lined_up(np.ones((2, 3)), np.ones(3))
    lined_up(np.ones(3), np.ones((5, 2, 3)))
    for p, q in [((3,), (4,)), ((2, 3), (4, 3)), ((2, 1), (2, 3)), ((), ()), ((1, 3), (2, 3))]:
        with pytest.raises(ValueError, match="expected rows over the same categories"):
            lined_up(np.ones(p), np.ones(q))
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        exact(logits_p=[0.0, 1.0], logits_q=[0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    "row", [[0.4, 0.4, 0.2], [-1.0, -1.2, -1.7], [3.0, 1.0, 4.0], [np.nan, 0.0, -1.0]]
)
def test_what_is_no_row_of_log_probs_is_refused(row) -> None:
    """Probabilities, the head of a longer row, counts, a gap."""
    whole = np.log([0.5, 0.3, 0.2])
    with pytest.raises(ValueError, match="log_probs_q, row 0 has probabilities that sum to"):
        exact(log_probs_p=whole, log_probs_q=row)
    with pytest.raises(ValueError, match="log_probs, row 1"):
        entropy(log_probs=[whole, row])


def test_rows_rounded_to_bfloat16_are_taken() -> None:
    row = np.log(np.random.default_rng(0).dirichlet(np.ones(50_000) * 0.1)).astype(np.float32)
    nearest = row.view(np.uint32) + np.uint32(0x8000)
    rounded = (nearest & np.uint32(0xFFFF0000)).view(np.float32)
    assert abs(np.exp(rounded.astype(float)).sum() - 1) > 1e-5
    assert np.isfinite(entropy(log_probs=rounded))
