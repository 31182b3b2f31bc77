from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.controller import loop
from kullback.experiments.controller.loop import HOLED, SMOOTH, TARGET, Loop, Q

worlds = pytest.mark.parametrize("world", [SMOOTH, HOLED], ids=lambda world: world.name)


@worlds
def test_a_policy_of_the_family_is_the_best_for_its_coefficient(world):
    theta = world.at_target
    best = Q * np.exp(theta * world.reward)
    assert np.exp(world.log_p(theta)) == pytest.approx(best / best.sum(), rel=1e-12)
    assert float(world.kl(theta)) == pytest.approx(TARGET, abs=1e-12)
    assert float(world.kl(theta)) == pytest.approx(
        float(kb.divergence(np.exp(world.log_p(theta)), Q)), rel=1e-12
    )


@worlds
def test_told_the_exact_kl_the_loop_stays_on_its_target_and_comes_back_to_it(world):
    for start, skip in ((TARGET, 0), (0.8 * TARGET, 1800)):
        made = loop.run(world, [Loop("exact", 1, 0.0256)], 0, copies=2, start=start).settled(skip)
        assert made.kl == pytest.approx(1, abs=1e-9)
        assert made.log_beta == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("feed", ["k1", "k3", "auto"])
def test_what_is_told_is_the_estimate_of_the_batch(feed):
    counts, log_p = np.array([[[3, 20, 41]]]), SMOOTH.log_p(np.array([[1.3]]))
    rng = np.random.default_rng(0)
    told = loop._told([Loop(feed, 64, 0.1)], counts, log_p, np.zeros((1, 1)), rng)
    drawn = np.repeat(np.arange(3), counts[0, 0])
    if feed == "auto":  # its folds are by the order of the samples
        drawn = np.random.default_rng(0).permutation(drawn)
    log_p, log_q = log_p[0, 0][drawn], np.log(Q)[drawn]
    expected = kb.estimate(log_p=log_p, log_q=log_q, lengths=1, method=feed).mean
    assert float(told[0, 0]) == pytest.approx(expected, rel=1e-12)


def test_a_token_that_was_not_sampled_is_not_asked():
    log_p = HOLED.log_p(np.array([[200.0]]))
    counts = np.array([[[0, 0, 16]]])
    told = loop._told(
        [Loop("k3", 16, 0.1)], counts, log_p, np.zeros((1, 1)), np.random.default_rng()
    )
    assert np.isfinite(told).all()


def test_the_rules_on_what_they_are_told():
    told = TARGET * np.array([-1.0, 0.0, 0.7, 0.9, 1.1, 1.4, 3.0])
    gain = np.array(0.5)
    assert loop.proportional(told, gain) == pytest.approx([0.9, 0.9, 0.9, 0.95, 1.05, 1.1, 1.1])
    assert loop.unclipped(told, gain) == pytest.approx([1e-3, 0.5, 0.85, 0.95, 1.05, 1.2, 2.0])
    assert loop.doubling(told, gain).tolist() == [0.5, 0.5, 1, 1, 1, 1, 2]
    assert loop.doubling(TARGET * np.array([0.6, 1.6]), gain).tolist() == [0.5, 2]


def test_the_rules_of_many_loops_at_once_are_the_public_ones():
    told = TARGET * np.linspace(-1.0, 3.0, 83)
    proportional = kb.ProportionalRule(horizon=10_000, clip=loop.CLIP)
    band = kb.BandRule(above=loop.BAND, below=1 / loop.BAND, up=loop.FACTOR, down=1 / loop.FACTOR)
    for rule, public in ((loop.proportional, proportional), (loop.doubling, band)):
        by_one = [public.factor(float(kl), target=TARGET, n=256) for kl in told]
        assert rule(told, np.array(0.0256)) == pytest.approx(by_one, rel=1e-15)


@worlds
def test_the_gradient_of_a_batch_is_exact_on_average_and_noisy_as_said(world):
    theta, beta = np.full((1, 200_000), 0.8 * world.at_target), 1 / world.at_target
    log_p = world.log_p(theta)
    rng = np.random.default_rng(1)
    counts = rng.multinomial(64, np.exp(log_p[0, 0]), size=theta.shape)
    arguments = (theta, np.full(theta.shape, beta), log_p, counts, rng)
    exact = loop._move(world, [Loop("k1", 64, 0.1)], *arguments)
    drawn = loop._move(world, [Loop("k1", 64, 0.1, noise=1.0)], *arguments)
    error = drawn.std() / np.sqrt(drawn.size)
    assert abs(drawn.mean() - exact[0, 0]) < 5 * error


def test_the_same_seed_gives_the_same_run():
    first, again = (loop.run(SMOOTH, [Loop("k1", 64, 0.1)], 3, steps=20, copies=2) for _ in "ab")
    other = loop.run(SMOOTH, [Loop("k1", 64, 0.1)], 4, steps=20, copies=2)
    assert np.array_equal(first.kl, again.kl)
    assert not np.array_equal(first.kl, other.kl)
