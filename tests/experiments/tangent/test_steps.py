from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.tangent import steps

LEVEL = 0.05


def test_the_metric_is_the_second_derivative_of_the_kl():
    metric = steps.metric()
    for direction in np.array([[1, 0], [0, 1], [1, 1], [1, -2]]) * 1e-3:
        moved = steps.softmax(np.log(steps.CENTER) + np.append(direction, 0.0))
        assert steps.kl(steps.CENTER, moved) == pytest.approx(
            direction @ metric @ direction / 2, rel=2e-3
        )


def test_every_point_of_a_curve_has_its_level():
    for step in steps.equal_kl(LEVEL):
        moved = steps.softmax(np.log(steps.CENTER) + np.append(step, 0.0))
        assert steps.kl(steps.CENTER, moved) == pytest.approx(LEVEL, rel=1e-9)
    for step in steps.ellipse(LEVEL):
        assert step @ steps.metric() @ step / 2 == pytest.approx(LEVEL)


def test_the_circle_has_the_area_of_the_ellipse_and_crosses_the_level():
    def area(curve):
        x, y = curve.T
        return abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2

    assert area(steps.circle(LEVEL)) == pytest.approx(area(steps.ellipse(LEVEL)))
    least, most = steps.on_circle(LEVEL)
    assert least < LEVEL < most


@pytest.mark.parametrize("kind", ["natural", "plain"])
def test_every_step_of_a_run_has_the_same_kl_and_gains(kind):
    one = steps.walk(kind)
    taken = np.array(one.taken())
    moved = taken > 0
    assert taken[moved] == pytest.approx(steps.STEP, rel=1e-9)
    assert np.all(np.diff(one.rewards())[moved] > 0)
    assert one.rewards()[-1] >= steps.DONE


def test_a_penalized_run_ends_at_the_optimum_and_goes_no_further():
    for beta in (0.1, 0.2, 0.4):
        one = steps.walk("natural", beta)
        assert one.policies[-1] == pytest.approx(steps.leashed(beta), rel=1e-9)
        assert max(one.taken()) <= steps.STEP * (1 + 1e-9)
        assert one.drift()[-1] == pytest.approx(max(one.drift()))


def test_no_policy_is_better_than_the_natural_one_at_its_distance():
    rng = np.random.default_rng(0)
    policy = steps.walk("natural").policies[8]
    distance, reward = steps.kl(policy, steps.REFERENCE), policy @ steps.REWARD
    for scale in (0.01, 0.1, 1.0):
        for _ in range(200):
            other = steps.softmax(np.log(policy) + scale * rng.normal(size=5))
            if kb.divergence(other, steps.REFERENCE) <= distance:
                assert other @ steps.REWARD <= reward + 1e-12


def test_the_gain_pays_for_the_distance():
    for beta in (0.05, 0.2, 0.4):
        policy = steps.leashed(beta)
        gain = (policy - steps.REFERENCE) @ steps.REWARD
        assert beta * steps.kl(policy, steps.REFERENCE) <= gain


@pytest.mark.parametrize("seed", range(3))
def test_random_directions_add_up_within_five_exact_standard_errors(seed):
    for count in (1, 2, 16, 128):
        one = steps.wander(count, seed)
        assert one.exact == pytest.approx(steps.STEP * count)
        assert abs(one.z) < 5
    assert steps.wander(1, seed).mean == pytest.approx(steps.STEP)
