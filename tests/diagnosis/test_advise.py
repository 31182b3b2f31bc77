from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.columns import pack
from kullback.diagnosis.advise import CANNOT_TELL, NEEDS, advise
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS


def advised(columns: kb.Columns) -> kb.Advice:
    [found] = advise(summarize([columns]))
    return found


def normals(seed: int = 1, **more: Any) -> kb.Columns:
    x = np.random.default_rng(seed).normal(0.1, 1.0, size=(64, 32))
    return pack({"old": -0.5 * (x - 0.1) ** 2, "current": -0.5 * x**2}, **more)


@pytest.mark.parametrize("mass", [0.001, 0.01, 0.09])
def test_of_whole_distributions_the_shape_is_exact(mass: float) -> None:
    p, q = [mass, (1 - mass) / 2, (1 - mass) / 2], [0.1, 0.45, 0.45]
    [found] = advise(p=p, q=q)
    pair = kb.shape(p, q)
    assert (found.S, found.chi2) == pytest.approx((pair.S, pair.chi2_qp), rel=1e-12)
    assert (found.lam, found.jeffreys) == pytest.approx(
        (pair.lambda_star, pair.jeffreys), rel=1e-12
    )
    assert found.method == ("k3" if pair.variance_k3 < pair.variance_k1 else "k1")
    assert found.certainty == "exact"


def test_rows_of_distributions_count_alike() -> None:
    p, q = [[0.5, 0.5], [0.1, 0.9]], [[0.4, 0.6], [0.2, 0.8]]
    [both] = advise(p=p, q=q)
    one, other = (kb.shape(a, b) for a, b in zip(p, q, strict=True))
    by_hand = (one.chi2_qp + other.chi2_qp) / (2 * (one.jeffreys + other.jeffreys))
    assert abs(both.S - by_hand) < 1e-12


@pytest.mark.parametrize(
    ("p", "q", "verdict", "why"),
    [
        ([0.5, 0.5], [0.5, 0.5], "cannot-tell", "are equal"),
        ([0.5, 0.5], [1.0, 0.0], "cannot-tell", "is infinite"),
        ([1.0, 0.0], [0.5, 0.5], "holes", "no sample of p shows it"),
    ],
)
def test_where_there_is_no_shape_the_reason_says_why(p, q, verdict: str, why: str) -> None:
    [found] = advise(p=p, q=q)
    assert (found.verdict, found.method) == (verdict, "k1")
    assert np.isnan(found.S)
    assert why in found.why[0]


def test_tokens_of_rows_vary_within_and_between_them() -> None:
    """The exact variance of a token of a random row, by the joint distribution of both."""
    p, q = np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([[0.45, 0.55], [0.3, 0.7]])
    [found] = advise(p=p, q=q)
    terms = np.log(p / q) if found.method == "k1" else q / p - 1 - np.log(q / p)
    variance = (p / 2 * terms**2).sum() - (p / 2 * terms).sum() ** 2
    assert found.half_width == pytest.approx(1.96 * np.sqrt(variance), rel=1e-12)


def test_the_tokens_needed_follow_from_the_variance() -> None:
    [found] = advise(p=[0.5, 0.5], q=[0.4, 0.6])
    pair = kb.shape([0.5, 0.5], [0.4, 0.6])
    assert found.needed(0.001) == int(np.ceil(1.96**2 * pair.variance_k3 / 0.001**2))
    with pytest.raises(ValueError, match=r"half_width 0 is not positive"):
        found.needed(0)


def test_a_sample_that_tells_nothing_is_said_to() -> None:
    found = advised(normals())
    assert (found.verdict, found.certainty, found.method) == ("cannot-tell", "none", "auto")
    assert found.why[0].startswith(CANNOT_TELL)
    assert np.isnan(found.S)
    assert [rung.method for rung in found.next_rungs] == list(NEEDS)
    assert all(np.isnan(rung.gain) for rung in found.next_rungs)
    half = (found.estimate.high - found.estimate.low) / 2 if found.estimate else np.nan
    assert found.needed(half) == 64
    assert found.needed(half / 2) == 256


def test_holes_are_told_with_their_evidence_and_their_places() -> None:
    world = CLEAN_WORLDS["deep_holes_in_policy"](32)
    found = advised(world.sample(np.random.default_rng(0)))
    assert (found.verdict, found.certainty) == ("holes", "beyond-chance")
    assert "k3 is too low by that" in found.why[0]
    columns = normals()
    columns.log_probs["current"][5] = columns.log_probs["old"][5] + 9.0
    hit = advised(columns)
    assert hit.verdict == "holes"
    assert hit.where == ("(row 0, token 5), q/p = 8.1e+03",)


def test_the_gain_of_a_rung_is_measured_where_it_is_there() -> None:
    kl = np.random.default_rng(2).normal(0.005, 0.0005, size=(64, 32))
    found = advised(normals(exact={"KL(old||current)": kl}))
    assert found.method == "rao_blackwell"
    gains = {rung.method: rung.gain for rung in found.next_rungs}
    assert np.isnan(gains["partial"])
    assert gains["rao_blackwell"] > 10


@pytest.mark.parametrize("given", [{}, {"p": [0.5, 0.5]}, {"q": [0.5, 0.5]}])
def test_what_is_missing_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"a summary, or both p= and q="):
        advise(**given)
