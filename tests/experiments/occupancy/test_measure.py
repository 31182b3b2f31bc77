from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kullback as kb
from kullback.experiments.occupancy import measure

NEW = measure.even(measure.STEP_KL)


def uneven(seed):
    return np.random.default_rng(seed).uniform(0.05, 0.95, measure.CELLS)


def test_the_corridor_slips_and_has_walls():
    step = measure.moves(measure.old())
    assert step.sum(axis=1) == pytest.approx(np.ones(21), abs=1e-15)
    assert step[5, 4:7] == pytest.approx([0.44, 0.2, 0.36])
    assert step[0, :2] == pytest.approx([0.64, 0.36])
    assert step[20, 19:] == pytest.approx([0.44, 0.56])


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_the_linear_solve_is_the_sum_over_steps(discount):
    right = uneven(0)
    weights = (1 - discount) * discount ** np.arange(4001)
    summed = weights @ measure.at_steps(right, 4000)
    assert measure.occupancy(right, discount) == pytest.approx(summed, abs=1e-12)


def test_the_long_run_stands_still_and_balances():
    for right in (measure.old(), uneven(1)):
        where = measure.occupancy(right, 1)
        assert where.sum() == pytest.approx(1, abs=1e-12)
        assert where @ measure.moves(right) == pytest.approx(where, abs=1e-14)
        # What goes right over a border comes back left.
        assert where[:-1] * right[:-1] == pytest.approx(where[1:] * (1 - right[1:]), abs=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_the_kl_of_paths_is_that_of_actions_added_up(seed):
    p, q = uneven(seed), uneven(seed + 10)
    path, cells, last = measure.enumerated(p, q, 6)
    assert path == pytest.approx(measure.path_kl(p, q, 6)[-1], rel=1e-12)
    at = [measure.at_steps(one, 6)[-1] for one in (p, q)]
    assert last == pytest.approx(float(kb.divergence(*at)), rel=1e-12)
    assert last < cells < path


def test_over_the_other_policys_states_it_is_another_number():
    """The wrong twin: KL(p‖q) of each action over the states of q."""
    p, q = uneven(0), uneven(10)
    wrong = float(np.sum(measure.at_steps(q, 6)[:-1] @ measure.action_kl(p, q)))
    assert abs(wrong - measure.enumerated(p, q, 6)[0]) > 0.01


@given(st.integers(0, 10_000), st.floats(0.1, 0.999))
def test_the_bounds_hold(seed, discount):
    p, q = uneven(seed), uneven(seed + 1)
    here, there = measure.occupancy(p, discount), measure.occupancy(q, discount)
    moved = float(kb.divergence(here, there, "tv"))
    assert all(moved <= bound for bound in measure.bounds(p, q, discount))
    most = discount / (1 - discount) * float(here @ measure.action_kl(p, q))
    assert float(kb.divergence(here, there)) <= most


def test_an_even_update_has_its_kl_in_every_cell():
    assert measure.action_kl(measure.old(), NEW) == pytest.approx(0.005, rel=1e-9)
    assert NEW[0] == pytest.approx(0.5, abs=1e-4)
    only = measure.shifted(1.0, slice(14, None))
    assert np.all(measure.action_kl(measure.old(), only)[:14] == 0)
