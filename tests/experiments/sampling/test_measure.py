from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kullback.experiments.sampling import measure
from kullback.experiments.sampling.measure import Filter, P, Q, means

ORACLE = json.loads(
    (Path(__file__).parents[2] / "oracles" / "e_truncated_sampling.json").read_text()
)
FILTERS = {
    "top_k=3": Filter(top_k=3),
    "top_p=0.9 (smallest prefix with cum>=0.9)": Filter(top_p=0.9),
    "top_k=1 greedy": Filter(top_k=1),
    "temperature=0.7": Filter(temperature=0.7),
    "temperature=1.3": Filter(temperature=1.3),
    "temperature=0.7 + top_k=4": Filter(temperature=0.7, top_k=4),
    "none": Filter(),
}
NAMES = {
    "policy": "KL_raw_policy_vs_ref",
    "sampler": "KL_behaviour_vs_ref",
    "both_cut": "KL_behaviour_vs_truncated_ref",
    "kept_p": "kept_mass_policy",
    "kept_q": "kept_mass_reference",
    "raw_k1": "naive_k1_mean",
    "raw_k3": "naive_k3_mean",
    "raw_r": "naive_mean_r_minus_1",
    "k1": "corrected_k1_mean_processed_logprobs",
    "k3": "k3_mean_processed_logprobs",
    "r": "mean_r_minus_1_processed",
    "k3_fixed": "generalised_k3_r_minus_qS_mean",
    "weight": "is_weight_mean_p_over_b",
    "weighted_k1": "is_k1_mean",
    "weighted_k3": "is_k3_mean",
    "bound": "data_processing_lower_bound_on_raw_KL",
}


def numbers(told):
    return np.array([float(value) for value in told])


@pytest.mark.parametrize("case", ORACLE["cases"], ids=lambda case: case["name"].split(" (")[0])
def test_every_mean_is_that_of_34_digits(case):
    assert numbers(ORACLE["p_raw"]) == pytest.approx(P)
    assert numbers(ORACLE["q_ref"]) == pytest.approx(Q)
    s = FILTERS[case["name"]](P)
    assert s == pytest.approx(numbers(case["behaviour"]), rel=1e-13)
    found = means(P, s, Q)
    for ours, theirs in NAMES.items():
        assert getattr(found, ours) == pytest.approx(float(case[theirs]), rel=1e-12, abs=1e-15)


def test_every_mean_has_an_oracle():
    assert set(NAMES) == set(measure.Means.__slots__)
    assert set(FILTERS) == {case["name"] for case in ORACLE["cases"]}


PAIRS = {"six": (P, Q), "same tail": (P, measure.SAME_TAIL), "wide": measure.zipf()}
pairs = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
cuts = pytest.mark.parametrize(
    "cut", [Filter(top_k=2), Filter(top_p=0.9), Filter(min_p=0.3)], ids=["top-k", "top-p", "min-p"]
)


@pairs
@cuts
def test_what_a_cut_does_in_closed_form(pair, cut):
    p, q = pair
    it = means(p, cut(p), q)
    kept = it.kept_q / it.kept_p
    assert it.raw_k1 == pytest.approx(it.sampler + np.log(it.kept_p), abs=1e-12)
    assert it.raw_k3 == pytest.approx(it.raw_k1 + kept - 1, abs=1e-12)
    assert it.raw_k1 == pytest.approx(it.both_cut - np.log(kept), abs=1e-12)
    assert it.raw_k3 == pytest.approx(it.both_cut + kept - 1 - np.log(kept), abs=1e-12)
    assert it.k1 == pytest.approx(it.sampler, abs=1e-12)
    assert it.k3 == pytest.approx(it.sampler + it.kept_q - 1, abs=1e-12)
    assert it.k3_fixed == pytest.approx(it.sampler, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_weighted_k3_is_a_bound_and_the_cut_masses_make_a_better_one(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(12, 0.7), size=2)
    for cut in (Filter(top_k=4), Filter(top_p=0.8), Filter(min_p=0.2)):
        it = means(p, cut(p), q)
        assert 0 <= it.weighted_k3 <= it.bound + 1e-12
        assert it.bound <= it.policy + 1e-12


def test_weighted_k1_of_a_cut_is_no_bound():
    it = means(P, Filter(top_p=0.9)(P), Q)
    assert it.weighted_k1 > it.policy


@pairs
@pytest.mark.parametrize("temperature", [0.5, 0.7, 1.3, 2.0])
def test_the_weight_repairs_a_temperature(pair, temperature):
    p, q = pair
    it = means(p, Filter(temperature=temperature)(p), q)
    assert it.weighted_k1 == pytest.approx(it.policy, rel=1e-12)
    assert it.weighted_k3 == pytest.approx(it.policy, rel=1e-12)
    assert it.k3 == pytest.approx(it.sampler, rel=1e-12)


def test_three_names_of_one_filter():
    four = Filter(top_k=4)(P)
    assert np.array_equal(Filter(top_p=0.9)(P), four)
    assert np.array_equal(Filter(min_p=0.2)(P), four)


def test_the_order_of_the_tokens_does_not_matter():
    order = np.array([3, 0, 5, 1, 4, 2])
    for cut in (Filter(top_k=3), Filter(top_p=0.8), Filter(temperature=0.7, min_p=0.3)):
        assert cut(P[order]) == pytest.approx(cut(P)[order], rel=1e-14)


def test_references_that_differ_where_nothing_is_drawn_cannot_be_told_apart():
    s = Filter(top_p=0.9)(P)
    one, other = (means(P, s, measure.retailed(share, s)) for share in (0.6, 0.001))
    assert one.policy == pytest.approx(one.bound, rel=1e-12)
    assert other.policy > 3 * one.policy
    for name in set(measure.Means.__slots__) - {"policy"}:
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-12)
    assert measure.retailed(0.68, s) == pytest.approx(Q, rel=1e-12)


def test_the_error_is_that_of_the_mean():
    p, q = P, Q
    k1 = -np.log(q / p)
    sd = np.sqrt(p @ (k1 - p @ k1) ** 2 / 100)
    assert measure.relative_error(p, p, q, "weighted_k1", 100) == pytest.approx(sd / (p @ k1))


@pytest.mark.parametrize("seed", range(3))
def test_draws_are_within_five_exact_standard_errors(seed):
    for sampler in (Filter(top_p=0.9), Filter(temperature=0.7)):
        for drawn in measure.draw(P, sampler(P), Q, seed).values():
            assert abs(drawn.z) < 5
