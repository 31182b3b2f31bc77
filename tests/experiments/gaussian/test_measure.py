from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.gaussian import measure

ORACLE = json.loads(
    (Path(__file__).parents[2] / "oracles" / "a_schulman_gaussian.json").read_text()
)
CASES = [case for case in ORACLE["cases"] if float(case["mu"]) <= 2.5]


@pytest.mark.parametrize("case", CASES, ids=[case["mu"][:5] for case in CASES])
def test_integrals_are_the_numbers_of_34_digits(case):
    p, q = (float(case["mu"]), 1.0), (0.0, 1.0)
    kl = float(case["KL"])
    for name, formula in measure.FORMULAS.items():
        found = measure.moments(formula, p, q)
        assert found.mean == pytest.approx(float(case[name]["mean"]), rel=1e-9, abs=1e-13)
        assert found.sd / kl == pytest.approx(float(case[name]["sd_over_true"]), rel=1e-8)
    both = measure.pair(p, q)
    assert both.lambda_star == pytest.approx(float(case["lambda_star"]), rel=1e-9)
    star = measure.moments(measure.k_star(both.lambda_star), p, q)
    assert star.sd / kl == pytest.approx(float(case["k_lambda_star"]["sd_over_true"]), rel=1e-6)


def test_the_variances_are_those_of_the_documents_closed_forms():
    for mean in measure.MEANS:
        both = measure.pair((mean, 1.0), (0.0, 1.0))
        assert both.k1 == pytest.approx(mean**2, rel=1e-9)
        assert both.k3 == pytest.approx(np.expm1(mean**2) - mean**2, rel=1e-6)
        third = measure.moments(kb.k3, (mean, 1.0), (0.0, 1.0)).variance
        assert third == pytest.approx(both.k3, rel=1e-6)


def test_the_crossover_is_that_of_the_oracle():
    oracle = ORACLE["k1_k3_variance_crossover"]
    assert measure.crossover() == pytest.approx(
        (float(oracle["mu"]), float(oracle["KL"])), rel=1e-12
    )


def test_a_q_too_wide_leaves_k3_without_a_variance():
    wide = measure.pair((0.0, 1.0), (0.0, 1.5))
    assert (wide.k3, wide.S, wide.lambda_star) == (np.inf, np.inf, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_draws_are_within_five_exact_standard_errors(seed):
    normal = measure.noise(seed)
    for mean in (0.1, 1.0):
        for formula in (*measure.FORMULAS.values(), measure.turned, kb.other_direction):
            drawn = measure.draw(mean, formula, normal)
            assert abs(drawn.z_of_mean) < 5
            assert abs(drawn.z_of_variance) < 5


def test_dimensions_count_by_their_total_kl():
    k1, joint, summed = measure.independent(16, 0.1)
    one = measure.pair((0.0, 1.0), (0.4, 1.0))
    assert (k1, joint) == pytest.approx((one.k1**0.5 / one.kl, one.k3**0.5 / one.kl))
    assert summed == pytest.approx(measure.independent(1, 0.1)[2] / 4)
