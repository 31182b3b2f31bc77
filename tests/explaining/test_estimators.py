from __future__ import annotations

import pytest

from kullback.explaining.estimators import ESTIMATORS
from kullback.question import LEVELS


def numbers(name):
    return ESTIMATORS[name].worked()[1]


@pytest.mark.parametrize("name", ["k1", "k3"])
def test_the_mean_over_all_tokens_is_the_kl(name):
    assert numbers(name)["mean"] == pytest.approx(numbers(name)["kl"], rel=1e-12)


def test_k2_is_off():
    assert numbers("k2")["mean"] > 1.3 * numbers("k2")["kl"]


def test_k1_alone_of_the_three_goes_below_zero():
    below = {name: numbers(name)["negative_share"] for name in ("k1", "k2", "k3")}
    assert below == {"k1": pytest.approx(0.22, abs=0.005), "k2": 0.0, "k3": 0.0}


def test_k_lambda_has_one_mean_and_its_least_noise_at_the_best_lambda():
    """λ* = J / χ² is 1.145 there (tests/oracles)."""
    found = numbers("k_lambda")
    assert found["best"] == pytest.approx(1.145, abs=5e-4)
    means = [value for key, value in found.items() if key.startswith("mean")]
    assert means == pytest.approx([found["kl"]] * 3, rel=1e-12)
    noise = [found[f"deviation_{lam}"] for lam in ("0.00", "1.00", "1.15")]
    assert min(noise) == noise[2]


def test_the_exact_kl_differs_less_between_tokens_than_k1_does():
    assert numbers("exact")["deviation"] < numbers("exact")["deviation_k1"]


def test_the_two_directions_differ_and_an_honest_batch_is_often_negative():
    found = numbers("kl")
    assert found["kl"] == pytest.approx(0.2077, abs=5e-5)
    assert found["other_way"] == pytest.approx(0.1418, abs=5e-5)
    assert found["negative_batches"] == pytest.approx(0.40, abs=0.005)


def test_at_sequence_mean_k1_answers_another_question():
    found = numbers("levels")
    assert set(LEVELS) < set(found)
    assert abs(found["k1_at_sequence_mean"] - found["sequence_mean"]) > 0.005


def test_an_interval_of_few_sequences_holds_less_than_it_says():
    assert all(0.7 < held < 0.9 for held in numbers("interval").values())
