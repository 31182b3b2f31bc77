from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.occupancy import directions, measure

every = pytest.mark.parametrize("direction", directions.DIRECTIONS)


@every
@pytest.mark.parametrize("kl", [0.001, 0.005, 0.1])
def test_an_update_has_the_size_that_is_asked_for(direction, kl):
    one = directions.of_size(direction, kl)
    assert one.kl == pytest.approx(kl, rel=1e-9)
    moved = np.flatnonzero(one.right != measure.old())
    assert list(moved) == list(range(measure.CELLS))[directions.DIRECTIONS[direction]]


@every
def test_weights_have_mean_1_and_give_the_other_kl(direction):
    one = directions.of_size(direction, 0.02)
    assert float(np.sum(one.chances)) == pytest.approx(1, abs=1e-12)
    assert float(np.sum(one.chances * one.weights)) == pytest.approx(1, abs=1e-12)
    where = measure.occupancy(measure.old())
    other = float(where @ measure.action_kl(one.right, measure.old()))
    assert one.other_kl() == pytest.approx(other, rel=1e-10)
    assert one.other_kl(1.2) < one.other_kl()


@every
def test_the_clip_fraction_leaps_where_it_is_said_to(direction):
    where = measure.occupancy(measure.old())[directions.DIRECTIONS[direction]].sum()
    first, second = directions.jumps(direction)
    shares = [
        directions.of_size(direction, edge * (1 + side)).clipped
        for edge in (first, second)
        for side in (-1e-6, 1e-6)
    ]
    assert shares == pytest.approx([0, 0.45 * where, 0.45 * where, where], abs=1e-9)


def test_on_the_edge_no_step_is_clipped():
    assert directions.Update(measure.old() * 1.2).clipped == 0


def test_a_clip_fraction_stands_still_while_the_kl_grows():
    found = [directions.Update(measure.shifted(-x, slice(0, 1))) for x in (0.5, 2.0, 8.0)]
    assert found[0].clipped == found[1].clipped == found[2].clipped > 0.2
    assert found[2].kl > 50 * found[0].kl


def test_what_only_the_new_policy_visits_is_left_out():
    one = directions.Update(measure.shifted(3.0, directions.FAR))
    assert one.kl_of_new > 5 * one.kl
    assert one.most == pytest.approx(one.kl / measure.occupancy(measure.old())[14:].sum())


def test_even_updates_have_one_effective_share_by_hand():
    one = directions.of_size(directions.EVERYWHERE, 0.005)
    p, q = 0.45, one.right[0]
    assert one.effective == pytest.approx(1 / (q**2 / p + (1 - q) ** 2 / (1 - p)), rel=1e-12)
    assert one.clipped == 0
