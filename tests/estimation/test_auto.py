from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kullback as kb
from kullback.columns import pack
from kullback.estimation.estimate import from_state
from kullback.estimation.question_state import QuestionState
from kullback.question import Question

PROPERTY = settings(derandomize=True, deadline=None)
PQ = Question("p", "q")


def drawn(rng: np.random.Generator, p: list[float], q: list[float], count: int) -> dict[str, Any]:
    x = rng.choice(len(p), size=count, p=p)
    return {"log_p": np.log(p)[x], "log_q": np.log(q)[x]}


def held(p: list[float], q: list[float], count: int, method: str, times: int = 400) -> float:
    """The share of samples whose interval holds the KL."""
    exact = float(np.dot(p, np.log(p) - np.log(q)))
    rng = np.random.default_rng([count, len(p)])
    found = [kb.estimate(**drawn(rng, p, q, count), lengths=1, method=method) for _ in range(times)]
    return float(np.mean([e.low <= exact <= e.high for e in found]))


def test_a_hole_that_was_hardly_sampled_is_reckoned_with() -> None:
    p, q = [0.001, 0.4995, 0.4995], [0.1, 0.45, 0.45]
    assert held(p, q, 64, "k3") < 0.1
    assert held(p, q, 64, "k1") < 0.15
    assert held(p, q, 64, "auto") > 0.99


def test_a_smooth_pair_has_little_more_than_half_the_width_of_k1() -> None:
    p, q = [0.25, 0.25, 0.25, 0.25], [0.2, 0.24, 0.27, 0.29]
    assert held(p, q, 256, "auto") > 0.94
    rng, ratios = np.random.default_rng(2), []
    for _ in range(100):
        sample = drawn(rng, p, q, 256)
        auto, k1 = (kb.estimate(**sample, lengths=1, method=name) for name in ("auto", "k1"))
        assert auto.high >= k1.high - 1e-12
        assert auto.standard_error < 0.6 * k1.standard_error
        ratios.append((auto.high - auto.low) / (k1.high - k1.low))
    assert np.mean(ratios) < 0.6


def test_a_rare_event_of_the_other_side_widens_upward() -> None:
    """A token that q nearly forbids, seen once, may well be four times as likely."""
    log_q = np.random.default_rng(3).normal(-0.005, 0.1, size=1000)
    log_q[17] = -15.0
    auto, k1 = (
        kb.estimate(log_p=0 * log_q, log_q=log_q, lengths=1, method=name) for name in ("auto", "k1")
    )
    assert auto.high > 0.07 > k1.high
    assert any("log p/q is at most 15 nats, the largest sampled" in a for a in auto.assumptions)


def test_equal_policies_are_0() -> None:
    x = np.random.default_rng(4).normal(-1, 0.3, size=(50, 8))
    found = kb.estimate(log_p=x, log_q=x)
    assert (found.mean, found.low, found.high, found.standard_error) == (0, 0, 0, 0)


def test_a_sum_has_the_interval_of_a_mean_times_the_length() -> None:
    """Of sequences of one length, the allowance too."""
    rng = np.random.default_rng(5)
    log_q = rng.normal(0.0, 0.3, size=(60, 10)) - 0.1
    arrays: dict[str, Any] = {"log_p": 0 * log_q, "log_q": log_q}
    per_token, per_sequence = (
        kb.estimate(**arrays, level=level) for level in ("token_mean", "sequence_sum")
    )
    for name in ("mean", "low", "high", "standard_error"):
        assert getattr(per_sequence, name) == pytest.approx(10 * getattr(per_token, name))


def test_a_third_sampler_is_weighed_and_its_tapered_mean_is_right() -> None:
    rng = np.random.default_rng(6)
    p, q, s = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.35, 0.25]), np.array([0.3, 0.3, 0.4])
    x = rng.choice(3, size=(500, 8), p=s)
    found = kb.estimate(log_p=np.log(p)[x], log_q=np.log(q)[x], log_sampler=np.log(s)[x])
    exact = float(p @ np.log(p / q))
    assert found.lam > 0.5
    assert found.low < exact < found.high
    assert abs(found.mean - exact) < 5 * found.standard_error


logs = st.lists(st.lists(st.floats(-30, 30), min_size=1, max_size=4), min_size=2, max_size=20)


@PROPERTY
@given(logs, st.sampled_from(["token_mean", "sequence_sum", "sequence_mean"]))
def test_intervals_are_nested_in_the_confidence(rows: list[list[float]], level: str) -> None:
    log_q = np.concatenate(rows)
    found = [
        kb.estimate(
            log_p=0 * log_q,
            log_q=log_q,
            lengths=[len(row) for row in rows],
            level=level,
            confidence=confidence,
        )
        for confidence in (0.5, 0.9, 0.95, 0.999)
    ]
    assert len({one.mean for one in found}) == 1
    if found[0].reason is None:
        assert [one.low for one in found] == sorted((one.low for one in found), reverse=True)
        assert [one.high for one in found] == sorted(one.high for one in found)
        assert found[0].low <= found[0].mean <= found[0].high
        assert found[0].low >= 0 or found[0].mean < 0


@PROPERTY
@given(st.lists(st.floats(-3, 3), min_size=20, max_size=60), st.integers(1, 19))
def test_parts_of_a_batch_add_up_to_it(values: list[float], cut: int) -> None:
    log_q = np.array(values)[:, None]
    clusters = np.arange(len(log_q))

    def state(chosen: slice) -> QuestionState:
        arrays = {"p": 0 * log_q[chosen], "q": log_q[chosen]}
        return QuestionState.of(pack(arrays, clusters=clusters[chosen]), PQ)

    whole = from_state(state(slice(None)))
    parts = from_state(state(slice(0, cut)) + state(slice(cut, None)))
    for name in ("mean", "low", "high", "standard_error", "lam"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-9, abs=1e-12)
