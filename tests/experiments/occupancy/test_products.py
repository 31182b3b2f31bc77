from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import kullback as kb
from kullback.experiments.occupancy import measure, products

NEW = measure.even(measure.STEP_KL)


@pytest.fixture(scope="module")
def paths():
    return products.along(NEW, 200)


@pytest.mark.parametrize("steps", [0, 1, 7, 60, 200])
def test_cells_and_choices_are_those_of_the_old_policy(paths, steps):
    one = paths[steps]
    where = measure.at_steps(measure.old(), steps)[-1]
    assert one.joint.sum(axis=1) == pytest.approx(where, abs=1e-14)
    counts = binom.pmf(np.arange(steps + 1), steps, measure.OLD_RIGHT)
    assert one.joint.sum(axis=0) == pytest.approx(counts, abs=1e-13)


@pytest.mark.parametrize("steps", [1, 60, 200])
def test_whole_products_are_right(paths, steps):
    one = paths[steps]
    weighted = one.joint @ np.exp(one.log_weight)
    assert weighted == pytest.approx(one.new, rel=1e-9, abs=1e-15)
    assert one.mean() == pytest.approx(1, abs=1e-12)
    assert one.at_last() == pytest.approx(measure.at_steps(NEW, steps)[-1, -1], rel=1e-9)
    assert one.kl() == pytest.approx(measure.path_kl(NEW, measure.old(), steps)[-1], rel=1e-9)
    p, q = measure.actions(measure.old())[0], measure.actions(NEW)[0]
    chi2 = float(kb.divergence(q, p, "chi2"))
    assert one.effective() == pytest.approx((1 + chi2) ** -steps, rel=1e-9)


def test_a_cut_loses_mass_and_looks_better(paths):
    one = paths[200]
    lost = [1 - one.mean(cut) for cut in (100.0, 10.0, 2.0)]
    assert sorted(lost) == lost
    assert lost[0] > 0
    # The mass that is lost, counted under the new policy.
    count = np.arange(201)
    chance = binom.pmf(count, 200, NEW[0])
    thrown = chance @ np.maximum(1 - 2 / np.exp(one.log_weight), 0)
    assert lost[2] == pytest.approx(thrown, rel=1e-9)
    shares = [one.effective(cut) for cut in (np.inf, 10.0, 2.0)]
    assert sorted(shares) == shares
    assert one.at_last(2.0) < one.at_last(10.0) < one.at_last()


def test_the_weight_of_a_step_answers_for_the_old_policys_states():
    """Its mean given the state is 1, so that it cancels."""
    weights = measure.actions(NEW) / measure.actions(measure.old())
    assert np.sum(measure.actions(measure.old()) * weights, axis=1) == pytest.approx(1, abs=1e-15)
