from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.worlds import tables

CASES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "e_truncated_sampling.json").read_text()
)
POLICY = np.log(np.asarray(CASES["p_raw"], dtype=np.float64))[None]
RNG = np.random.default_rng(0)
WIDE = tables.zipf(RNG, contexts=64, alphabet=500)


def behaviour(name: str) -> np.ndarray:
    case = next(
        case
        for case in CASES["cases"]
        if case["name"].split(" (")[0].removesuffix(" greedy") == name
    )
    return np.asarray(case["behaviour"], dtype=np.float64)[None]


def test_zipf_is_a_power_of_the_rank():
    ordered = -np.sort(-WIDE, axis=1)
    exponent = (ordered[:, :1] - ordered[:, 1:]) / np.log(np.arange(2, 501))
    assert exponent == pytest.approx(np.repeat(exponent[:, :1], 499, axis=1), rel=1e-10)
    assert exponent.min() >= 0.9
    assert exponent.max() <= 2.5
    assert len(np.unique(WIDE.argmax(axis=1))) > 32


@pytest.mark.parametrize(
    "altered",
    [
        WIDE,
        tables.drifted(RNG, WIDE, 0.5),
        tables.holed(RNG, WIDE),
        tables.tempered(WIDE, 0.7),
        tables.peaked(WIDE, RNG.uniform(0.5, 0.99, size=(64, 1))),
        tables.ending(WIDE, 0.02),
        tables.kept_top_k(WIDE, 20),
        tables.kept_top_p(WIDE, 0.9),
    ],
)
def test_every_table_is_normalized(altered):
    assert np.exp(altered).sum(axis=1) == pytest.approx(np.ones(64), rel=1e-12)


def test_holes_fall_by_the_depth_and_the_rest_keeps_its_proportions():
    fallen = tables.holed(np.random.default_rng(1), WIDE, share=0.05, depths=(5.0, 6.0), below=0.01)
    change = fallen - WIDE
    rest = change.max(axis=1, keepdims=True)
    hole = change < rest - 1.0
    assert change[~hole] == pytest.approx(np.broadcast_to(rest, hole.shape)[~hole], abs=1e-10)
    depth = np.broadcast_to(rest, hole.shape)[hole] - change[hole]
    assert depth.min() >= 5.0 - 1e-9
    assert depth.max() <= 6.0 + 1e-9
    assert np.exp(WIDE[hole]).max() <= 0.01
    assert abs(hole.mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / hole.size)


def test_drift_has_the_size_asked_for():
    drift = tables.drifted(np.random.default_rng(2), WIDE, 0.3) - WIDE
    within = drift - drift.mean(axis=1, keepdims=True)
    freedom = within.size - 64
    variance = (within**2).sum() / freedom
    assert abs(variance / 0.09 - 1) < 5 * np.sqrt(2 / freedom)


def test_peak_has_the_mass_and_the_others_keep_their_proportions():
    peaked = tables.peaked(WIDE, 0.9)
    assert np.exp(peaked.max(axis=1)) == pytest.approx(np.full(64, 0.9), rel=1e-12)
    change = np.sort(peaked - WIDE, axis=1)[:, :-1]
    assert change == pytest.approx(np.repeat(change[:, :1], 499, axis=1), abs=1e-10)


def test_end_takes_its_probability_from_all_alike():
    table = tables.ending(WIDE, 0.02)
    assert np.exp(table[:, 0]) == pytest.approx(np.full(64, 0.02))
    assert table[:, 1:] - WIDE == pytest.approx(np.full(WIDE.shape, np.log(0.98)))


@pytest.mark.parametrize(
    ("name", "altered"),
    [
        ("top_k=3", tables.kept_top_k(POLICY, 3)),
        ("top_k=1", tables.kept_top_k(POLICY, 1)),
        ("top_p=0.9", tables.kept_top_p(POLICY, 0.9)),
        ("temperature=0.7", tables.tempered(POLICY, 0.7)),
        ("temperature=0.7 + top_k=4", tables.kept_top_k(tables.tempered(POLICY, 0.7), 4)),
    ],
)
def test_sampling_filters_are_the_oracles(name, altered):
    assert np.exp(altered) == pytest.approx(behaviour(name), rel=1e-12, abs=1e-12)


@given(seed=st.integers(0, 10_000), p=st.floats(0.05, 0.99))
@settings(derandomize=True, deadline=None, max_examples=50)
def test_top_p_keeps_the_fewest_likeliest_tokens_that_reach_p(seed, p):
    log_p = tables.zipf(np.random.default_rng(seed), contexts=1, alphabet=30)
    kept = np.isfinite(tables.kept_top_p(log_p, p))
    probs = np.exp(log_p)
    assert probs[kept].sum() >= p - 1e-9
    assert probs[kept].sum() - probs[kept].min() < p
    assert not (~kept).any() or probs[kept].min() >= probs[~kept].max()


def test_head_is_the_likeliest_first():
    ids, logs = tables.head(WIDE, 20)
    assert logs.tolist() == (-np.sort(-WIDE, axis=1)[:, :20]).tolist()
    assert np.take_along_axis(WIDE, ids, axis=1).tolist() == logs.tolist()
