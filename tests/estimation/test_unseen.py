from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.estimation.unseen import MOST, allowance, unseen_mass

PROPERTY = settings(derandomize=True, deadline=None)


@PROPERTY
@given(st.floats(1e-9, MOST), st.floats(0, 0.999))
def test_nothing_more_can_hide_and_so_much_can(mass: float, lam: float) -> None:
    """Over every q-mass of what was not sampled; its least k_λ is that of one ratio, by Jensen."""
    q_mass = np.append(np.geomspace(1e-12, 1, 20_001), min(1.0, mass / lam) if lam else 1.0)
    hidden = -mass * np.log(q_mass / mass) + lam * (q_mass - mass)
    assert hidden.min() >= -allowance(mass, lam) - 1e-12
    assert hidden.min() == pytest.approx(-allowance(mass, lam), rel=1e-6, abs=1e-12)


@PROPERTY
@given(st.floats(1e-9, MOST), st.floats(0, 3), st.floats(1, 2))
def test_less_hides_where_less_was_missed_or_more_is_controlled(
    mass: float, lam: float, factor: float
) -> None:
    assert allowance(min(mass * factor, MOST), lam) >= allowance(mass, lam) - 1e-15
    assert 0 <= allowance(mass, lam * factor) <= allowance(mass, lam) + 1e-15


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.005])
@pytest.mark.parametrize("units", [20, 100])
def test_the_mass_above_the_largest_sampled_ratio_is_bounded(units: int, alpha: float) -> None:
    """Exactly, over all samples: outcomes by descending r, of p-mass 1/50 each."""
    above = np.arange(51) / 50  # mass of all outcomes with a larger r than the i-th
    bound = unseen_mass(units, alpha)
    # The largest sampled is the i-th: none of those above it, and not none of it too.
    chance = (1 - above[:-1]) ** units - (1 - above[1:]) ** units
    assert chance.sum() == pytest.approx(1)
    assert chance[above[:-1] > bound].sum() <= alpha


def test_the_rule_of_three() -> None:
    assert unseen_mass(1000, 0.05) == pytest.approx(-math.log(0.05) / 1000)
    assert unseen_mass(2, 0.05) == MOST
