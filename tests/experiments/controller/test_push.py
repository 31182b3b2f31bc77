from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.controller import push
from kullback.experiments.controller.loop import CLIP, HOLED, SMOOTH, TARGET, Loop, Q, run

worlds = pytest.mark.parametrize("world", [SMOOTH, HOLED], ids=lambda world: world.name)


@worlds
@pytest.mark.parametrize("feed", ["k1", "k3"])
def test_every_batch_is_counted_and_the_mean_is_the_kl(world, feed):
    for samples in (1, 16, 64):
        values, chance = push.estimates(world, feed, samples, world.at_target)
        assert chance.sum() == pytest.approx(1, rel=1e-10)
        assert chance @ values == pytest.approx(TARGET, rel=1e-10)


@worlds
@pytest.mark.parametrize("feed", ["k1", "k3"])
def test_the_push_is_that_of_draws(world, feed):
    rng, theta = np.random.default_rng(2), 0.9 * world.at_target
    log_q_over_p = np.log(Q) - world.log_p(theta)
    values = -log_q_over_p + (np.expm1(log_q_over_p) if feed == "k3" else 0.0)
    drawn = rng.multinomial(64, np.exp(world.log_p(theta)), size=50_000) @ values / 64
    error = np.clip(drawn / TARGET - 1, -CLIP, CLIP)
    exact = push.push(world, feed, 64, theta)
    assert abs(error.mean() - exact) < 5 * error.std() / np.sqrt(error.size)


def test_a_slow_loop_stays_where_the_push_is_0():
    (rest,) = push.rests(HOLED, "k1", 16)
    kl = run(HOLED, [Loop("k1", 16, 0.0256)], 5).settled(500).kl.mean(axis=0)
    assert kl.mean() == pytest.approx(rest, abs=0.01)
    assert abs(rest - 1) > 0.1


def test_k3_that_sees_no_hole_rests_the_mass_of_the_hole_above_the_target():
    *_, far = push.rests(HOLED, "k3", 64)
    assert far * TARGET == pytest.approx(TARGET + Q[0], abs=1e-3)


def test_shares_are_of_one_batch():
    below, low, high = push.shares(HOLED, "k3", 1)
    p = np.exp(HOLED.log_p(HOLED.at_target))
    assert below == 0
    assert high == pytest.approx(p[0], rel=1e-9)
    assert low + high == pytest.approx(1, rel=1e-9)
    assert push.shares(SMOOTH, "k1", 16)[0] > 0.05
