from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.gradients import descent
from kullback.experiments.gradients.descent import BETA, FAR, REWARD, Q, kl
from kullback.experiments.gradients.measure import Term

K1, K2, K3 = Term("k1"), Term("k2"), Term("k3")
K1_PAID, K3_PAID = Term("k1", "reward"), Term("k3", "reward")
NONE = np.zeros(4)

# What each descends, by its name.
DESCENDED = {
    K1: lambda p: 0.0,
    K2: lambda p: kl(p, Q),
    K3: lambda p: kl(Q, p),
    K1_PAID: lambda p: kl(p, Q),
    K3_PAID: lambda p: kl(p, Q) - kl(Q, p),
}


@pytest.mark.parametrize("term", DESCENDED)
@pytest.mark.parametrize("start", [FAR, np.array([0.1, 0.2, 0.3, 0.4])])
def test_a_step_follows_the_slope_of_what_is_named(term, start):
    found = descent.slope(np.log(start), term, REWARD, BETA)
    for place in range(4):
        ends = []
        for step in (1e-5, -1e-5):
            p = start * np.exp(step * (np.arange(4) == place))
            p = p / p.sum()
            ends.append(BETA * DESCENDED[term](p) - p @ REWARD)
        assert found[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-9)


def test_with_a_reward_k2_and_k3_end_at_their_optima():
    by_kl, by_other = (descent.descend(Q, term, REWARD, BETA, 3000)[-1] for term in (K2, K3))
    assert by_kl == pytest.approx(descent.best_by_kl(), abs=1e-9)
    assert by_other == pytest.approx(descent.best_by_other_kl(), abs=1e-9)
    for best in (descent.best_by_kl(), descent.best_by_other_kl()):
        assert best.sum() == pytest.approx(1, abs=1e-12)


def test_no_policy_nearby_is_better_than_the_optima():
    rng = np.random.default_rng(0)
    for best, way in (
        (descent.best_by_kl(), lambda p: kl(p, Q)),
        (descent.best_by_other_kl(), lambda p: kl(Q, p)),
    ):
        for _ in range(20):
            p = best * np.exp(0.1 * rng.normal(size=4))
            p = p / p.sum()
            assert p @ REWARD - BETA * way(p) < best @ REWARD - BETA * way(best)


def test_alone_k1_stays_k2_and_k3_arrive_and_k3_paid_leaves():
    ends = {term: descent.alone(term, 100)[-1] for term in (K1, K2, K3, K3_PAID)}
    assert ends[K1] == pytest.approx(FAR, abs=1e-12)
    assert max(kl(ends[K2], Q), kl(ends[K3], Q)) < 1e-5
    assert kl(ends[K3_PAID], Q) > kl(FAR, Q)
    hole = descent.alone(K3_PAID, 100)[:, 0]
    assert np.all(np.diff(hole) < 0)


def test_the_grid_is_every_policy_but_the_reference():
    grid = descent.grid()
    assert grid.sum(axis=1) == pytest.approx(1)
    assert grid.min() == pytest.approx(0.05)
    assert len(grid) == 968
    assert np.abs(grid - Q).max(axis=1).min() > 0.04


def test_a_start_counts_as_nearer_by_its_own_path():
    nearer, arrived = descent.from_grid(K3_PAID, 200)
    ends = [descent.descend(start, K3_PAID, NONE, 1.0, 200)[-1] for start in descent.grid()[::40]]
    some = sum(kl(end, Q) < kl(start, Q) for start, end in zip(descent.grid()[::40], ends,
                                                               strict=True))  # fmt: skip
    assert some <= nearer == 8
    assert arrived == 0
    assert descent.from_grid(K2, 200) == (968, 968)
