from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from kullback.experiments.four_faces import measure

ORACLE = json.loads((Path(__file__).parents[2] / "oracles" / "c_four_faces.json").read_text())


def test_the_numbers_are_those_of_34_digits():
    for q, told in ((measure.BROAD, ORACLE["p_vs_q1"]), (measure.NARROW, ORACLE["p_vs_q2"])):
        assert measure.kl(measure.P, q) == pytest.approx(float(told["KL_pq"]), rel=1e-13)
        assert measure.kl(q, measure.P) == pytest.approx(float(told["KL_qp"]), rel=1e-13)
    told = ORACLE["p_vs_q2"]
    assert measure.variance(measure.K1) == pytest.approx(float(told["var_k1"]), rel=1e-13)
    assert measure.variance(measure.K3) == pytest.approx(float(told["var_k3"]), rel=1e-13)
    assert pytest.approx(0.51) == measure.NEGATIVE
    for place, one in enumerate(ORACLE["per_outcome"]):
        assert measure.K1[place] == pytest.approx(float(one["k1"]), rel=1e-13)
        assert measure.K3[place] == pytest.approx(float(one["k3"]), rel=1e-12)


@pytest.mark.parametrize("tokens", range(1, 8))
@pytest.mark.parametrize("most", [measure.LOGGED, 0.7, 3.0])
def test_the_chance_of_a_mean_is_that_of_all_sequences(tokens, most):
    chance = sum(
        float(np.prod(measure.P[list(drawn)]))
        for drawn in itertools.product(range(4), repeat=tokens)
        if np.sum(measure.K1[list(drawn)]) <= most * tokens
    )
    assert measure.chance_of_mean(most, tokens) == pytest.approx(chance, rel=1e-12)


def test_the_bound_is_a_bound_and_falls_below_one_in_a_hundred_at_149():
    for tokens in (1, 2, 8, 64, 149, 512):
        bound = measure.bound(measure.LOGGED, tokens)
        assert measure.chance_of_mean(measure.LOGGED, tokens) <= bound
        for kl in (0.0005, 0.005, 0.05, 0.5):
            assert measure.chance_between_normals(measure.LOGGED, tokens, kl) <= bound
    assert measure.bound(measure.LOGGED, 148) > 0.01 > measure.bound(measure.LOGGED, 149)
    assert measure.first_below(0.01) == 149


@pytest.mark.parametrize("seed", range(3))
def test_draws_are_within_five_exact_standard_errors(seed):
    for values in (measure.K1, measure.K3, (measure.K1 < 0).astype(float)):
        assert abs(measure.draw(values, seed).z) < 5


@pytest.mark.parametrize("q", [measure.BROAD, measure.NARROW], ids=["broad", "narrow"])
def test_both_decompositions_are_identities(q):
    assert abs(measure.cross_entropy(q).left) < 1e-15
    assert abs(measure.evidence(q).left) < 1e-15
    assert measure.evidence(q).divergence == pytest.approx(measure.kl(q, measure.P), rel=1e-13)
