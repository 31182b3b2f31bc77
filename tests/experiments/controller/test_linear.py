from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.controller import linear
from kullback.experiments.controller.linear import critical, matrix, slope, spread
from kullback.experiments.controller.loop import HOLED, RESPONSE, SMOOTH, TARGET, Loop, run

worlds = pytest.mark.parametrize("world", [SMOOTH, HOLED], ids=lambda world: world.name)


@worlds
def test_the_matrix_is_the_derivative_of_the_loop_itself(world):
    """Two steps from just beside the target, with what is told exact."""
    gain, small = 0.3, 1e-6
    start = float(world.kl(world.at_target * np.exp(small)))
    made = run(world, [Loop("exact", 1, gain)], 0, steps=3, copies=2, start=start)
    kappa = slope(world)
    states = np.array([small, 0.0])
    for step in range(3):
        assert made.kl[step, 0, 0] - 1 == pytest.approx(kappa * states[0], rel=1e-4)
        assert made.log_beta[step, 0, 0] == pytest.approx(states[1], rel=1e-4, abs=1e-14)
        states = matrix(gain * kappa) @ states


@pytest.mark.parametrize("response", [0.02, RESPONSE, 0.5, 0.95])
def test_a_loop_comes_to_rest_below_the_critical_gain_whatever_the_response(response):
    for pushed, rests in ((0.3, True), (0.99, True), (1.01, False)):
        largest = np.abs(np.linalg.eigvals(matrix(pushed, response))).max()
        assert (largest < 1) == rests


@worlds
@pytest.mark.parametrize("gain", [0.0256, 0.1, 0.4])
def test_the_stationary_variance_has_a_closed_form(world, gain):
    a, c = RESPONSE, gain * slope(world)
    told = gain**2 * linear.error(world, "k1") ** 2 / 100
    closed = told * (2 - a + a * c) / (c * (1 - c) * (4 - 2 * a + a * c))
    found = spread(world, Loop("k1", 100, gain))
    assert found.kl == pytest.approx(slope(world) ** 2 * closed, rel=1e-10)
    if gain < 0.1:
        thumb = linear.rule_of_thumb(slope(world), gain, linear.error(world, "k1"), 100)
        assert thumb == pytest.approx(np.sqrt(found.kl), rel=0.03)


@worlds
def test_k1_is_as_noisy_as_the_slope_says_along_such_policies(world):
    assert linear.error(world, "k1") ** 2 == pytest.approx(slope(world) / TARGET, rel=1e-10)


def test_noises_of_estimate_and_gradient_add_up():
    both = spread(SMOOTH, Loop("k1", 64, 0.1, noise=2.0))
    one, other = spread(SMOOTH, Loop("k1", 64, 0.1)), spread(SMOOTH, Loop("exact", 64, 0.1, 2.0))
    assert both.kl == pytest.approx(one.kl + other.kl, rel=1e-12)
    assert both.log_beta == pytest.approx(one.log_beta + other.log_beta, rel=1e-12)


def test_the_clip_lets_little_through_of_much_noise_and_all_of_little():
    loud, faint = Loop("k1", 4, 0.0256), Loop("k1", 10**6, 0.0256)
    assert spread(SMOOTH, loud, clip=True).kl < 0.2 * spread(SMOOTH, loud).kl
    assert spread(SMOOTH, faint, clip=True).kl == pytest.approx(spread(SMOOTH, faint).kl, rel=1e-9)
    told, rng = 0.3, np.random.default_rng(0)
    error = np.clip(rng.normal(0, told, 400_000), -0.2, 0.2)
    passes, noise = linear._clipped(told)
    assert np.mean(error**2) == pytest.approx(noise, rel=0.01)
    assert np.mean(np.abs(error) < 0.2) == pytest.approx(passes, abs=0.005)


@worlds
def test_draws_are_as_predicted_and_those_of_another_estimate_are_not(world):
    loops = [Loop(feed, 65_536, 0.1) for feed in ("k1", "k3")]
    squares, errors = run(world, loops, 7, steps=600).settled(100).squares()
    for place in range(len(loops)):
        z = [(squares[place] - spread(world, said).kl) / errors[place] for said in loops]
        assert abs(z[place]) < 5
        assert abs(z[1 - place]) > 5


def test_the_critical_gain_is_where_the_loop_itself_begins_to_swing():
    limit = critical(SMOOTH)
    loops = [Loop("exact", 1, share * limit) for share in (0.9, 1.1)]
    below, above = run(SMOOTH, loops, 0, copies=2, start=0.99 * TARGET).settled(1500).squares()[0]
    assert below < 1e-9
    assert above > 1e-3
