from __future__ import annotations

import numpy as np
import pytest
from scipy.special import kl_div

import kullback as kb
from kullback.experiments.epsilon import measure
from kullback.experiments.epsilon.measure import ADDED, CANDIDATES, REPAIRS, RULED_OUT, P

every = pytest.mark.parametrize("repair", REPAIRS)


@every
def test_a_decade_of_epsilon_adds_the_ruled_out_mass(repair):
    for name, q in CANDIDATES.items():
        steps = np.diff([measure.repaired(name, repair, 10.0**-n) for n in (10, 11, 12)])
        assert steps == pytest.approx(measure.missing(q) * np.log(10), abs=1e-8)


def test_epsilon_says_what_was_found_for_other_distributions():
    p, q = np.array([0.5, 0.2, 0.3, 0.0]), np.array([0.6, 0.4, 0.0, 0.0])
    both = [(p + epsilon, q + epsilon) for epsilon in (1e-6, 1e-8, 1e-10)]
    found = [measure.shown(p / np.sum(p), q / np.sum(q)) for p, q in both]
    assert found == pytest.approx([3.553670299639, 4.935222150049, 6.316773222910], rel=1e-5)


@every
def test_each_candidate_wins_somewhere_and_changes_places_where_said(repair):
    assert [measure.winner(repair, at) for at in (1e-2, 1e-8, 1e-14)] == ["A", "B", "C"]
    for pair in ("AB", "BC"):
        at = measure.turns(repair, *pair)
        assert measure.winner(repair, at * 1.01) == pair[0]
        assert measure.winner(repair, at / 1.01) == pair[1]


def test_a_policy_is_below_0_from_itself_by_the_mass_that_was_added():
    assert measure.from_itself(1e-6) == pytest.approx(-np.log1p(0.151936), rel=1e-9)
    q = P + 1e-3
    assert measure.shown(P, q) < 0 <= np.sum(kl_div(P, q))
    assert np.sum(kl_div(P, q)) == pytest.approx(measure.shown(P, q) + 5e-3, rel=1e-9)


@pytest.mark.parametrize("left", [1e-9, 1e-6, 3e-5, 0.01])
@pytest.mark.parametrize("repair", [None, ADDED, *list(REPAIRS)[2:]])
def test_the_force_is_the_slope_of_the_loss(repair, left):
    epsilon = 1e-5
    logits = np.log(measure.student(left))
    here = np.eye(len(P))[RULED_OUT] * 1e-5

    def loss(at):
        q = np.exp(at) / np.sum(np.exp(at))
        return -P @ np.log(q if repair is None else REPAIRS[repair](q, epsilon))

    slope = (loss(logits + here) - loss(logits - here)) / 2e-5
    assert measure.force(repair, left, epsilon) == pytest.approx(-slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-6, 1e-12])
def test_the_pulls_are_slopes_too(epsilon):
    q = P * np.exp(measure.log_ratio(epsilon))
    here = np.eye(len(P))[RULED_OUT] * 1e-5

    def policy(step):
        return P * np.exp(step) / np.sum(P * np.exp(step))

    def slope(value):
        return (value(policy(here)) - value(policy(-here))) / 2e-5

    kl = slope(lambda p: float(kb.divergence(p, q)))
    assert measure.pull_of_kl(epsilon) == pytest.approx(kl, rel=1e-6)
    k3 = slope(lambda p: P @ kb.k3(np.log(q / p)))
    assert measure.pull_of_k3(epsilon) == pytest.approx(k3, rel=1e-6)


def test_k3_misses_the_mass_that_its_sampler_cannot_reach():
    kl, k1, k3 = measure.off_support()
    assert k1 == pytest.approx(kl, rel=1e-12)
    assert kl - k3 == pytest.approx(0.08, rel=1e-12)


def test_a_batch_that_sees_nothing_is_one_of_the_rest():
    chance, k1, k3 = measure.unseen(32)
    rest = np.delete(np.arange(5), RULED_OUT)
    ratio = CANDIDATES["A"][rest] / P[rest]
    assert chance == pytest.approx(0.92**32)
    assert k1 == pytest.approx(np.log(0.92))
    assert k3 == pytest.approx(ratio[0] - 1 + np.log(0.92))


def test_skew_is_bounded():
    for q in CANDIDATES.values():
        assert measure.skewed(q, 0.1) < np.log(10)
    assert measure.skewed(np.eye(5)[4], 0.1) < np.log(10)
