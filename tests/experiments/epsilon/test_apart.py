from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.epsilon import apart


def test_from_their_width_on_supports_are_disjoint_and_only_one_distance_moves():
    for shift in apart.SHIFTS:
        both = apart.bump(0.0), apart.bump(shift)
        overlap = np.any((both[0] > 0) & (both[1] > 0))
        assert overlap == (shift < apart.WIDTH)
        found = list(apart.distances(shift).values())
        assert found[3] == pytest.approx(shift / apart.FAR, abs=1e-12)
        if not overlap:
            assert found[:3] == pytest.approx([1, 1, 1], abs=1e-12)
        assert (kb.divergence(*both) == np.inf) == (shift > 0)


def test_the_height_of_the_smoothed_kl_is_that_of_epsilon():
    for epsilon in (1e-6, 1e-12):
        far = [apart.smoothed(shift, epsilon) for shift in (2.0, 3.0, 4.0)]
        assert far == pytest.approx([far[0]] * 3, rel=1e-9)
    assert apart.smoothed(2.0, 1e-12) > 2 * apart.smoothed(2.0, 1e-6)


def test_wasserstein_is_total_variation_where_all_outcomes_are_equally_far():
    from scipy.optimize import linprog

    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
    cost = (1 - np.eye(3)).ravel()
    sums = np.vstack([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))])
    carried = linprog(cost, A_eq=sums, b_eq=np.concatenate([p, q])).fun
    assert carried == pytest.approx(float(kb.divergence(p, q, "tv")), abs=1e-9)


def test_renumbering_makes_it_another_number():
    assert apart.renumbered(4.0, 0) < apart.renumbered(3.0, 0) < 1.0
