from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.occupancy import measure, rollouts
from kullback.experiments.occupancy.directions import FAR_END, of_size

NEW = measure.shifted(0.7, slice(1, 3))


def brute(value, carried, steps):
    """Mean and variance over every path, one by one."""
    paths = [(1.0, 0, 1.0, 0.0)]  # chance, cell, what the rest is multiplied by, so far
    for _ in range(steps):
        longer = []
        for chance, cell, factor, total in paths:
            for action, way in enumerate((-1, 1)):
                end = min(max(cell + way, 0), 20)
                more = total + factor * value[cell, action]
                for there, share in ((cell, measure.SLIP), (end, 1 - measure.SLIP)):
                    own = chance * share * measure.actions(measure.old())[cell, action]
                    longer.append((own, there, factor * carried[cell, action], more))
        paths = longer
    chance, _, _, total = np.array(paths).T
    mean = chance @ total
    return mean, chance @ (total - mean) ** 2


def test_moments_are_those_of_every_path():
    weight = measure.actions(NEW) / measure.actions(measure.old())
    value = weight * np.log(weight)
    for carried in (np.ones_like(weight), weight):
        found = rollouts.moments(value, carried, 6)
        assert found == pytest.approx(brute(value, carried, 6), rel=1e-11)


def test_the_means_are_path_kls():
    found = rollouts.asked(NEW, 0)
    logged, visited = found[rollouts.LOGGED], found[rollouts.VISITED]
    there = measure.path_kl(measure.old(), NEW, rollouts.STEPS)[-1]
    assert logged.exact == pytest.approx(there, rel=1e-10)
    back = measure.path_kl(NEW, measure.old(), rollouts.STEPS)[-1]
    assert visited.exact == pytest.approx(back, rel=1e-10)


def test_episodes_are_those_of_the_old_policy():
    cells, chosen = rollouts.draw(3)
    where = measure.at_steps(measure.old(), rollouts.STEPS)
    for step in (10, 100, 299):
        exact, n = where[step], rollouts.EPISODES
        seen = np.bincount(cells[:, step], minlength=measure.CELLS) / n
        there = exact > 0
        z = (seen - exact)[there] / np.sqrt((exact * (1 - exact))[there] / n)
        assert np.max(np.abs(z[exact[there] > 0.005])) < 5
    size = chosen.size
    assert abs(chosen.mean() - 0.45) < 5 * np.sqrt(0.45 * 0.55 / size)


@pytest.mark.parametrize("seed", [0, 1])
def test_estimates_are_within_five_exact_errors(seed):
    for new in (measure.even(measure.STEP_KL), of_size(FAR_END, measure.STEP_KL).right):
        assert all(abs(one.z) < 5 for one in rollouts.asked(new, seed).values())


def test_the_states_of_the_new_policy_are_out_of_reach():
    one = rollouts.asked(of_size(FAR_END, measure.STEP_KL).right, 0)[rollouts.VISITED]
    assert one.drawn.high < one.exact / 3
    assert one.error > 1e14
    assert one.drawn.standard_error < 0.5
