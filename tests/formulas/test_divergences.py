"""Divergences of probabilities: definitions, limits in the order, holes, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.formulas.categorical import log_softmax
from kullback.formulas.divergences import divergence, probabilities

INF = np.inf
KINDS = [
    ("kl", None),
    ("js", None),
    ("chi2", None),
    ("tv", None),
    ("hellinger", None),
    *[("alpha", order) for order in (-1.0, 0.0, 0.3, 1.0, 2.0)],
    *[("renyi", order) for order in (0.0, 0.3, 1.0, 2.0, INF)],
]
# Of (1, 0) and (1/2, 1/2), whose middle is (3/4, 1/4).
JS_OF_HALF = (np.log(4 / 3) + np.log(2 / 3) / 2 + np.log(2) / 2) / 2
HELLINGER_OF_HALF = np.sqrt(1 - np.sqrt(0.5))
P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
prove = settings(derandomize=True, max_examples=50, deadline=None, database=None)
rows = st.lists(st.floats(-8, 8), min_size=3, max_size=3).map(lambda z: np.exp(log_softmax(z)))


@pytest.mark.parametrize(("kind", "order"), KINDS)
@prove
@given(p=rows, q=rows)
def test_never_negative_and_zero_between_equals(kind, order, p, q) -> None:
    assert divergence(p, q, kind, order) >= -1e-15
    assert abs(divergence(p, p, kind, order)) <= 1e-15


@pytest.mark.parametrize(
    ("kind", "order", "disjoint", "p_wider", "q_wider"),
    [
        ("kl", None, INF, INF, np.log(2)),
        ("js", None, np.log(2), JS_OF_HALF, JS_OF_HALF),
        ("chi2", None, INF, INF, 1.0),
        ("tv", None, 1.0, 0.5, 0.5),
        ("hellinger", None, 1.0, HELLINGER_OF_HALF, HELLINGER_OF_HALF),
        ("alpha", 0.5, 4.0, 4 - np.sqrt(8), 4 - np.sqrt(8)),
        ("alpha", 2.0, INF, INF, 0.5),
        ("alpha", -1.0, INF, 0.5, INF),
        ("alpha", 0.0, INF, np.log(2), INF),
        ("renyi", 0.0, INF, 0.0, np.log(2)),
        ("renyi", 0.5, INF, np.log(2), np.log(2)),
        ("renyi", 2.0, INF, INF, np.log(2)),
        ("renyi", INF, INF, INF, np.log(2)),
    ],
)
def test_holes(kind, order, disjoint, p_wider, q_wider) -> None:
    left, right, wide = np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), np.array([0.5, 0.5, 0])
    assert np.isclose(divergence(left, right, kind, order), disjoint, rtol=1e-14)
    assert np.isclose(divergence(wide, left, kind, order), p_wider, rtol=1e-14, atol=1e-15)
    assert np.isclose(divergence(left, wide, kind, order), q_wider, rtol=1e-14)


@pytest.mark.parametrize("kind", ["alpha", "renyi"])
def test_orders_meet_their_limits(kind) -> None:
    for order in (0.0, 1.0):
        near = divergence(P, Q, kind, order + 1e-6)
        assert np.isclose(divergence(P, Q, kind, order), near, rtol=1e-5, atol=1e-6)
    assert divergence(P, Q, "alpha", 1.0) == divergence(P, Q)
    assert divergence(P, Q, "alpha", 0.0) == divergence(Q, P)


def test_kinds_against_their_definitions() -> None:
    middle = (P + Q) / 2
    kl = np.sum(P * np.log(P / Q))
    js = np.sum(P * np.log(P / middle)) / 2 + np.sum(Q * np.log(Q / middle)) / 2
    assert np.isclose(divergence(P, Q), kl, rtol=1e-13)
    assert np.isclose(divergence(P, Q, "js"), js, rtol=1e-13)
    assert np.isclose(divergence(P, Q, "chi2"), np.sum((P - Q) ** 2 / Q), rtol=1e-14)
    assert np.isclose(divergence(P, Q, "tv"), 0.1, rtol=1e-14)
    overlap = np.sum(np.sqrt(P * Q))
    assert np.isclose(divergence(P, Q, "hellinger"), np.sqrt(1 - overlap), rtol=1e-13)
    assert np.isclose(divergence(P, Q, "alpha", 0.5), 4 * (1 - overlap), rtol=1e-12)
    assert np.isclose(divergence(P, Q, "renyi", 0.5), -2 * np.log(overlap), rtol=1e-12)
    assert np.isclose(divergence(P, Q, "renyi", INF), np.log(1.25), rtol=1e-14)


def test_renyi_of_rows_that_hardly_overlap() -> None:
    p, q = [1.0, 1e-20], [1e-20, 1.0]
    assert np.isclose(divergence(p, q, "renyi", 0.5), -2 * np.log(2e-10), rtol=1e-14)


def test_rows_along_the_last_axis_and_one_row_for_all() -> None:
    several = divergence([P, Q], Q)
    assert several.shape == (2,)
    assert several[0] == divergence(P, Q)
    assert several[1] == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.6], r"p has the sum 1.1, expected probabilities >= 0 that sum to 1 within 1e-06"),
        ([[0.5, 0.5], [1.5, -0.5]], r"p, row 1 has a negative or missing number"),
        ([[[0.5, 0.5]], [[0.5, np.nan]]], r"p, row \(1, 0\) has a negative or missing number"),
        ([INF, 0.0], r"p has the sum inf"),
        (0.5, r"p is one number, expected probabilities along the last axis"),
    ],
)
def test_what_is_no_distribution_is_refused_by_row(values, message) -> None:
    with pytest.raises(ValueError, match=message):
        probabilities("p", values)


def test_sums_within_the_tolerance_pass() -> None:
    assert probabilities("p", [0.5, 0.5 + 9e-7])[1] == 0.5 + 9e-7
    assert np.isclose(divergence(P, Q * (1 + 9e-7)), divergence(P, Q), rtol=1e-10, atol=0)


@pytest.mark.parametrize(
    ("kind", "order"),
    [("wasserstein", None), ("kl", 2.0), ("alpha", None), ("alpha", INF), ("renyi", -1.0)],
)
def test_kind_and_order_out_of_place_are_refused(kind, order) -> None:
    with pytest.raises(ValueError, match="expected one of kl, js, chi2, tv, hellinger"):
        divergence(P, Q, kind, order)


def test_different_categories_are_refused() -> None:
    with pytest.raises(ValueError, match="p and q have the shapes"):
        divergence(P, [0.5, 0.5])


def test_a_sum_may_be_off_by_the_rounding_of_its_precision() -> None:
    p = np.array([0.5, 0.5 - 2e-5])
    assert divergence(p.astype(np.float32), p.astype(np.float32)) == 0
    with pytest.raises(ValueError, match="within 1e-06"):
        divergence(p, p)
    with pytest.raises(ValueError, match=r"within 0\.0001"):
        divergence(np.array([0.5, 0.49], np.float32), np.array([0.5, 0.5], np.float32))
