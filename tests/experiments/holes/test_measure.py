from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kullback.experiments.holes import measure

ORACLE = json.loads((Path(__file__).parents[2] / "oracles" / "b_holes.json").read_text())
GRID = [one for one in ORACLE["grid_q_0.2_0.4_0.4"] if float(one["h"]) > 0]


def check(found, told):
    for ours, theirs in (
        ("kl_pq", "KL_pq"),
        ("variance_k1", "var_k1"),
        ("variance_k3", "var_k3"),
        ("S", "chi2_over_2J"),
        ("lambda_star", "lambda_star"),
    ):
        assert getattr(found, ours) == pytest.approx(float(told[theirs]), rel=1e-9)


@pytest.mark.parametrize("told", GRID, ids=[one["h"][:4] for one in GRID])
def test_the_sweep_is_that_of_34_digits(told):
    one = measure.at_depth(float(told["h"]))
    assert one.smooth == pytest.approx([float(value) for value in told["p2"]], rel=1e-9)
    check(one.of_hole, told["p1_stats"])
    check(one.of_smooth, told["p2_stats"])


def test_the_first_example_is_recovered_and_no_other_pair_has_its_digits():
    told = ORACLE["recovered_q_0.1_0.45_0.45_a_0.001"]
    one = measure.matched(measure.RECOVERED_HOLE, measure.RECOVERED_Q)
    check(one.of_hole, told["p1_stats"])
    check(one.of_smooth, told["p2_stats"])
    assert measure.same_kl() == [(0.1, 0.001)]
    assert one.of_hole.variance_k_lambda == pytest.approx(0.0, abs=1e-30)


def test_s_crosses_1_where_the_oracle_says_and_both_variances_are_equal_there():
    told = float(ORACLE["crossover_h_var_k3_equals_var_k1_under_p1"])
    assert measure.crossover() == pytest.approx(told, rel=1e-10)
    there = measure.at_depth(told).of_hole
    assert there.variance_k1 == pytest.approx(there.variance_k3, rel=1e-9)


@pytest.mark.parametrize(
    ("depth", "mean"), [(1, 0.1528), (1.2, 0.1466), (1.5, 0.0850), (2, 0.0427), (3, 0.0251)]
)
def test_the_clamp_takes_the_hole_away(depth, mean):
    one = measure.at_depth(depth)
    assert measure.clamped(one.hole, measure.Q)[0] == pytest.approx(mean, abs=5e-5)
    cut = mean < one.of_hole.kl_pq - 1e-3
    assert cut == (depth > measure.clamp_begins())


@pytest.mark.parametrize("seed", range(3))
def test_draws_are_within_five_exact_standard_errors(seed):
    one = measure.matched(measure.RECOVERED_HOLE, measure.RECOVERED_Q)
    for p in (one.hole, one.smooth):
        for exact, mean, z in measure.z_of_draws(p, one.q, seed).values():
            assert abs(z) < 5
            assert np.isfinite([exact, mean]).all()
