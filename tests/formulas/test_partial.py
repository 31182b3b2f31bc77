from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kullback.formulas import partial
from kullback.formulas.k_family import k1

P, Q = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.3, 0.4])


def head(*ids, dtype=np.float64):
    logs = (np.where(np.isin(range(3), ids), np.log(x), np.nan).astype(dtype) for x in (P, Q))
    return partial.head(log_p=next(logs), log_q=next(logs))


def test_the_sums_of_a_head():
    found = head(0, 1)
    assert found.nats == pytest.approx(0.6 * np.log(2), rel=1e-14)
    assert [found.p, found.q, found.p_tail, found.q_tail] == pytest.approx([0.9, 0.6, 0.1, 0.4])
    assert found.mean == pytest.approx(0.6 * np.log(2) / 0.9)


def test_each_form_by_hand():
    found, log_r = head(0, 1), np.log(Q / P)
    draw: dict[str, Any] = {
        "log_q_over_p": log_r,
        "inside": np.array([True, True, False]),
        "head": found,
    }
    nats = 0.6 * np.log(2)
    assert partial.plain(**draw) == pytest.approx([nats, nats, nats - np.log(4)])
    assert partial.conditional(**draw) == pytest.approx([nats / 0.9, nats / 0.9, -np.log(4)])
    assert partial.head_control(inside=draw["inside"], head=found) == pytest.approx(
        [-0.1, -0.1, 0.9]
    )
    assert partial.tail_control(**draw) == pytest.approx([-0.3, -0.3, 2.7])
    assert partial.lower_bound(found) == pytest.approx(nats + 0.1 * np.log(0.1 / 0.4))
    assert partial.centre(found) == pytest.approx(np.log(0.25) - nats / 0.9)
    assert partial.biased_head(found) == pytest.approx(nats)
    assert partial.biased_head_renormalized(found) == pytest.approx(nats / 0.9 - np.log(0.9 / 0.6))


def test_without_an_id_all_is_k1_or_nothing():
    found, log_r = head(), np.log(Q / P)
    draw: dict[str, Any] = {"log_q_over_p": log_r, "inside": np.zeros(3, bool), "head": found}
    for form in (partial.plain, partial.conditional):
        np.testing.assert_array_equal(form(**draw), k1(log_r))
    nothing = (partial.lower_bound, partial.centre, partial.biased_head)
    assert [form(found) for form in (*nothing, partial.biased_head_renormalized)] == [0.0] * 4
    assert partial.head_control(inside=False, head=found) == 0.0


def test_a_list_that_weighs_a_little_more_than_1_by_rounding_leaves_nothing_outside():
    logs = np.log(np.array([0.7, 0.3], np.float32)) + np.float32(1e-4)
    found = partial.head(log_p=logs, log_q=logs)
    assert found.p > 1
    assert found.p_tail == 0
    assert 0 < found.q_tail < 1e-5
    assert partial.lower_bound(found) == 0
    assert partial.conditional(log_q_over_p=0.0, inside=True, head=found) == 0


@pytest.mark.parametrize("side", ["p", "q"])
def test_a_list_that_is_no_distribution_is_refused(side):
    logs = {"log_p": np.log(P), "log_q": np.log(Q)} | {f"log_{side}": np.array([0.6, -1.0, -2.0])}
    with pytest.raises(ValueError, match=f"a head of {side} weighs 2.3.*not logits"):
        partial.head(**logs)


def test_what_q_rules_out_inside_the_head_is_infinite_and_nothing_is_nan():
    with np.errstate(divide="ignore"):
        found = partial.head(log_p=np.log(P), log_q=np.log([0.0, 0.6, 0.4]))
    assert found.nats == partial.lower_bound(found) == np.inf
    assert partial.conditional(log_q_over_p=0.1, inside=True, head=found) == np.inf
    assert partial.conditional(log_q_over_p=-0.5, inside=False, head=found) == 0.5
    with np.errstate(divide="ignore"):
        none = partial.head(log_p=np.log([0.0]), log_q=np.log([0.5]))
    assert partial.conditional(log_q_over_p=0.25, inside=True, head=none) == -0.25
    assert partial.lower_bound(none) == pytest.approx(0.5 + np.log(2) - 0.5)


def test_the_bound_does_not_rest_on_what_rounding_hides():
    """q has all its mass on the list: log(P(T)/0) would be infinite, and is not known to be."""
    one = np.log(np.array([0.5, 0.4], np.float32))
    whole = np.log(np.array([0.5, 0.5], np.float32))
    found = partial.head(log_p=one, log_q=whole)
    exact = 0.4 * np.log(0.4 / 0.5) + 0.1 * np.log(0.1 / found.q_tail)
    assert partial.lower_bound(found) == pytest.approx(exact, abs=1e-5)
    assert partial.lower_bound(found) < 1.1
