from __future__ import annotations

import numpy as np
import pytest

from kullback.explaining.enumerated import Tokens
from kullback.explaining.estimators import ESTIMATORS
from kullback.explaining.trust import TRUST


def numbers(name):
    return TRUST[name].worked()[1]


def test_missing_mass_is_zero_for_an_honest_sampler_and_not_after_a_truncation():
    found = numbers("missing-mass")
    assert found["mean"] == pytest.approx(0.0, abs=1e-14)
    assert found["top_2"] > 0.1


def test_the_product_has_mean_one_and_the_bound_holds():
    found = numbers("log-bound")
    assert found["product"] == pytest.approx(1.0, rel=1e-12)
    assert 0 < found["chance"] < found["bound"] == np.exp(-1)


def test_only_an_honest_sampler_is_as_surprised_as_its_entropy():
    found = numbers("entropy-test")
    assert found["honest"] == pytest.approx(0.0, abs=1e-15)
    assert found["sharper"] < -0.05


@pytest.mark.parametrize("sampler", ["old", "reference"])
def test_weights_left_are_one_over_one_plus_chi2(sampler):
    assert numbers("ess")[sampler] == pytest.approx(1 / (1 + numbers("chi2")[sampler]), rel=1e-12)


def test_shares_of_weights_are_counted():
    tokens = Tokens.of("reference")
    weight = np.exp(tokens.log_probs["current"] - tokens.log_probs["reference"])
    outside = tokens.weight[(weight < 0.8) | (weight > 1.2)].sum()
    assert numbers("clip-fraction")["reference"] == pytest.approx(outside, rel=1e-12)
    assert numbers("truncated-share")["reference"] == pytest.approx(
        tokens.weight[weight > 2].sum(), rel=1e-12
    )


def test_the_best_lambda_is_that_of_the_estimators():
    assert numbers("lambda")["near"] == pytest.approx(
        ESTIMATORS["k_lambda"].worked()[1]["best"], rel=1e-12
    )
    assert numbers("S")["near"] == pytest.approx(0.5 / numbers("lambda")["near"], rel=1e-12)
    assert numbers("S")["hole"] == pytest.approx(10.521, abs=5e-4)


def test_without_the_weight_a_log_shows_a_difference_of_two_kls():
    """From q's own tokens KL(q‖q) − KL(q‖p): minus the other direction."""
    assert numbers("unweighted-k1")["without"] == pytest.approx(
        -ESTIMATORS["kl"].worked()[1]["other_way"], rel=1e-12
    )
    assert numbers("unweighted-k1")["with"] > 0


def test_sequences_of_unequal_length_are_worth_fewer():
    assert numbers("effective-clusters")["of_100"] == pytest.approx(87.7, abs=0.05)
