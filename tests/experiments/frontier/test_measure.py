from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.frontier.measure import (
    GOLD,
    LOG_Q,
    PROXY,
    Q,
    at_kl,
    best_of,
    bound,
    levels,
    mix,
    place,
    stands,
    summit,
    table,
    tilted,
)
from kullback.experiments.frontier.training import answers


def test_the_answers_of_the_reference_are_a_policy():
    assert pytest.approx(1, abs=1e-12) == Q.sum()
    assert pytest.approx(np.exp(LOG_Q.sum(axis=1)), abs=1e-15) == Q
    assert mix(Q).sum() == pytest.approx(1, abs=1e-12)
    assert mix(Q)[3] == pytest.approx(0.04, abs=0.005)


@pytest.mark.parametrize("beta", [0.15, 0.5, 2.0])
def test_no_policy_has_more_proxy_reward_for_its_kl_than_the_tilted(beta):
    p = tilted(beta)
    best = p @ PROXY - beta * place(p).kl
    assert best == pytest.approx(beta * np.log(Q @ np.exp(PROXY / beta)), abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = p * np.exp(0.1 * rng.normal(size=len(p)))
        other /= other.sum()
        assert other @ PROXY - beta * place(other).kl < best


@pytest.mark.parametrize("n", [2, 3])
def test_best_of_n_is_the_best_of_n(n):
    """Every way to draw n answers, the best kept, equals by lot."""
    expected = np.zeros(len(Q))
    for worth in levels()[0]:
        below, at = Q[worth > PROXY].sum(), Q[worth == PROXY].sum()
        # One answer x and m − 1 others at its level, the rest below: x is kept with chance 1/m.
        for m in range(1, n + 1):
            ways = np.prod(range(n - m + 1, n + 1)) / np.prod(range(1, m + 1))
            expected[worth == PROXY] += ways * at**m * below ** (n - m) * (Q[worth == PROXY] / at)
    assert best_of(n) == pytest.approx(expected, abs=1e-12)


def test_best_of_two_by_every_pair():
    kept = np.zeros(len(Q))
    for first, chance in enumerate(Q):
        wins = (PROXY[first] > PROXY) + 0.5 * (PROXY[first] == PROXY)
        kept[first] = 2 * chance * (Q @ wins)
    assert best_of(2) == pytest.approx(kept, abs=1e-12)


def test_the_bound_holds_and_is_not_reached_where_answers_tie():
    for n in (2, 4, 16, 64, 256, 1024):
        assert 0.9 * bound(n) < place(best_of(n)).kl < bound(n)
    assert best_of(1) == pytest.approx(Q, abs=1e-14)
    assert np.max(best_of(7) / Q) <= 7


def test_a_table_is_read_off_any_policy_over_answers():
    p = best_of(10)
    assert answers(table(p)) == pytest.approx(p, abs=1e-14)


def test_places_of_many_are_those_of_each():
    policies = np.array([Q, tilted(0.4), best_of(9)])
    found = stands(policies)
    for row, p in enumerate(policies):
        assert place(p).kl == pytest.approx(float(np.sum(p * np.log(p / Q))), abs=1e-12)
        assert found["kl"][row] == pytest.approx(float(kb.divergence(p, Q)), abs=1e-14)
        assert found["proxy"][row] == pytest.approx(p @ PROXY, abs=1e-12)
        assert found["gold"][row] == pytest.approx(p @ GOLD, abs=1e-12)


@pytest.mark.parametrize("way", ["tilt", "best-of-n"])
def test_a_policy_of_a_way_has_the_kl_that_is_asked_for(way):
    found = [at_kl(kl, way)[1] for kl in (0.25, 2.0, 7.5)]
    assert [one.kl for one in found] == pytest.approx([0.25, 2.0, 7.5], abs=1e-10)
    assert all(low.proxy < high.proxy for low, high in pairwise(found))
    top = summit(way)
    assert all(top.gold > at_kl(top.kl + step, way)[1].gold for step in (-0.1, 0.1))
