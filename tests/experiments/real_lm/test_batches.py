from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.real_lm import batches
from kullback.experiments.real_lm.measure import DRAWN, arrays, pair

each = pytest.mark.parametrize("name", DRAWN)


def pool(name):
    """The mean of k1 over all draws that there are."""
    return -float(arrays()[f"{name}/log_r"].astype(np.float64).mean())


@each
def test_the_draws_are_of_the_pair(name):
    one = pair(name)
    draws = arrays()[f"{name}/log_r"].size
    z = (pool(name) - one.mean) / np.sqrt(one.variances["k1"].mean() / draws)
    assert abs(z) < 5


@each
def test_batches_have_the_exact_error_of_k1(name, drawn):
    it, one = drawn(name), pair(name)
    spread = one.error("k1", 16)
    assert abs(it.k1.mean() - pool(name)) < 5 * spread / np.sqrt(batches.REPEATS)
    # The standard deviation of an estimated one, of a normal mean.
    assert it.error("k1") == pytest.approx(spread, rel=5 / np.sqrt(2 * batches.REPEATS))


@pytest.fixture(scope="module")
def drawn():
    found = {name: batches.batches(name, 16, 0) for name in DRAWN}
    return found.__getitem__


@each
def test_k1_and_k3_differ_by_the_missing_mass(name, drawn):
    it = drawn(name)
    assert it.k3 == pytest.approx(it.k1 - it.missing, abs=1e-12)
    assert it.k3.min() > 0
    assert it.usual("k1") < it.error("k1")


def test_the_seed_decides(drawn):
    again, other = (batches.batches("noise", 16, seed) for seed in (0, 1))
    assert np.array_equal(again.auto, drawn("noise").auto)
    assert not np.array_equal(other.auto, again.auto)


def test_draws_show_little_of_what_holes_do():
    draws, variance = batches.seen("strong")
    assert draws == 7632 * 16
    assert variance < 1e-3 * pair("strong").variances["k3"].mean()
    assert batches.negative("light") == pytest.approx(0.5, abs=0.01)
