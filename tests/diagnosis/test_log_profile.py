from __future__ import annotations

import numpy as np
import pytest

from kullback.diagnosis.log_profile import FEWEST, profile, running_median


def noisy(steps: int = 200, seed: int = 0) -> np.ndarray:
    return 0.05 + 0.002 * np.random.default_rng(seed).standard_normal(steps)


def test_a_slow_drift_is_no_noise():
    drift = np.linspace(0, 1, 200)
    assert profile(noisy() + drift).noise == pytest.approx(0.002, rel=0.5)


def test_a_spike_is_one_step_and_back():
    values = noisy()
    values[[50, 120, 121]] = 1.0
    held = profile(values)
    assert held.spikes == (50,)
    assert held.changes == ()


def test_a_new_level_stays():
    values = noisy()
    values[80:] += 0.2
    held = profile(values)
    assert held.changes == (80,)
    assert held.spikes == ()


def test_places_count_what_is_no_number():
    values = np.insert(noisy(), 10, [np.nan, np.inf])
    values[60] = 1.0
    held = profile(values)
    assert held.not_finite == 2
    assert held.spikes == (60,)
    assert len(held.level) == 200


def test_random_walks_and_constants_have_no_events():
    for seed in range(200):
        walk = np.cumsum(np.random.default_rng(seed).standard_normal(100)) + 20
        held = profile(walk)
        assert held.changes == ()
    assert profile(np.full(50, 0.25)).spikes == ()


def test_rules_at_twice_and_half_the_level_see_noise():
    values = np.exp(np.random.default_rng(0).standard_normal(20_000))
    held = profile(values)
    # The share of a log-normal law above twice, and below half of its median.
    assert held.beyond_twice == pytest.approx(0.244, abs=0.03)
    assert held.below_half == pytest.approx(0.244, abs=0.03)


def test_short_series_have_no_noise():
    held = profile(np.ones(FEWEST - 1))
    assert np.isnan(held.noise)
    assert held.negative == 0
    assert np.isnan(profile(np.array([])).negative)


def test_the_median_runs_to_the_ends():
    values = np.arange(20.0)
    assert running_median(values).tolist() == [4.0] * 4 + list(range(4, 16)) + [15.0] * 4
    assert running_median(np.array([1.0, 5.0])).tolist() == [3.0, 3.0]


def test_a_drift_without_noise_has_no_events():
    for values in (np.linspace(-1, -233, 60), np.linspace(1e-9, 1, 100), 1e300 * np.arange(40.0)):
        held = profile(values.astype(np.float32).astype(float) if values[-1] < 1e30 else values)
        assert (held.spikes, held.changes) == ((), ())


def test_a_spike_comes_back_to_a_level_that_is_noisier_than_it_was():
    rng = np.random.default_rng(0)
    values = np.linspace(0.001, 0.1, 200) * np.exp(0.2 * rng.standard_normal(200))
    values[150] = 35.0
    assert profile(values).spikes == (150,)


def test_a_run_that_grows_has_no_new_level():
    rng = np.random.default_rng(0)
    growing = 0.05 * np.exp(
        np.maximum(0, np.arange(200) - 120) / 8 + 0.1 * rng.standard_normal(200)
    )
    assert profile(growing).changes == ()


def test_what_explodes_or_repeats_has_no_new_level():
    told = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        exploding = 0.02 * np.exp(np.linspace(0, 5, 60) + 0.3 * rng.standard_normal(60))
        told += profile(exploding).changes != ()
        cycle = np.tile([0.01, 0.05, 0.11, 0.2], 15) * np.exp(0.1 * rng.standard_normal(60))
        cycle[:4] *= 3
        assert profile(cycle).changes == ()
    assert told < 10


def test_what_begins_anew_falls_to_0_and_stays_small():
    rng = np.random.default_rng(0)
    climb = np.linspace(0, 0.03, 20) * np.exp(0.1 * rng.standard_normal((4, 20)))
    assert profile(climb.reshape(-1)).resets == (20, 40, 60)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        signed = 0.01 + 0.01 * rng.standard_normal(100)
        spread = 0.01 * np.exp(rng.standard_normal(100))
        cycle = np.tile([0.001, 0.05, 0.11, 0.2], 25) * np.exp(0.1 * rng.standard_normal(100))
        assert profile(signed).resets == profile(spread).resets == profile(cycle).resets == ()


@pytest.mark.parametrize("period", [2, 4, 5, 8])
def test_a_cycle_is_found_and_noise_and_drift_have_none(period):
    told = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        noise = np.exp(0.2 * rng.standard_normal(80))
        climb = np.tile(np.linspace(0.05, 0.2, period), 80)[:80] * np.linspace(1, 3, 80) * noise
        told += profile(climb).cycle == period
        for other in (noise, rng.standard_normal(80), np.cumsum(rng.standard_normal(80))):
            assert profile(other).cycle == 0
    assert told > 190
