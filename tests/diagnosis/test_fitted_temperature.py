from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from kullback.diagnosis.fitted_temperature import fitted, log_likelihoods, rounding
from kullback.estimation.tempered_state import EXPONENTS, RAW, TemperedState
from kullback.worlds import CLEAN_WORLDS, Mixture
from kullback.worlds.tables import drifted, kept_top_k, kept_top_p, tempered

WORLD = cast(Mixture, CLEAN_WORLDS["smooth"](64))
OWN = WORLD.log_probs["rollout"]


def state_of(table, seed: int = 0, world: Mixture = WORLD) -> TemperedState:
    draw = world.draw(np.random.default_rng(seed), table)
    return TemperedState.of(world.logged(draw, top_k=20), "rollout")


@pytest.mark.parametrize("temperature", [0.3, 0.5, 0.8, 0.95, 1.0, 1.2, 2.0])
def test_the_temperature_is_found_within_its_error(temperature):
    table = OWN if temperature == 1.0 else tempered(OWN, temperature)
    fit = fitted(state_of(table))
    assert fit is not None
    assert abs(fit.temperature - temperature) < 5 * fit.error + 0.003 * temperature
    assert fit.error < 0.02 * temperature
    assert fit.fits


def test_the_curve_through_twelve_exponents_is_the_likelihood():
    """Against the likelihood of every β, summed over the heads themselves."""
    draw = WORLD.draw(np.random.default_rng(0), tempered(OWN, 0.8))
    columns = WORLD.logged(draw, top_k=8)
    fit = fitted(TemperedState.of(columns, "rollout"))
    head = columns.top_k["rollout"]
    place = head.ids == np.asarray(columns.tokens)[:, None]
    logs, own = head.log_probs[place.any(axis=1)], head.log_probs[place]

    def likelihood(beta: float) -> float:
        return float((beta * own - np.logaddexp.reduce(beta * logs, axis=1)).sum())

    assert fit is not None
    # It has one maximum, log-concave in β as it is: here, if it is inside.
    grid = np.linspace(0.78, 0.82, 41)
    best = grid[np.argmax([likelihood(1 / t) for t in grid])]
    assert grid[0] < best < grid[-1]
    assert fit.temperature == pytest.approx(best, abs=2e-3)
    assert fit.gain == pytest.approx(likelihood(1 / best) - likelihood(1.0), rel=1e-2)


@pytest.mark.parametrize(
    "table", [kept_top_p(OWN, 0.9), drifted(np.random.default_rng(3), OWN, 1.5)]
)
def test_what_is_no_temperature_does_not_fit(table):
    fit = fitted(state_of(table))
    assert fit is not None
    assert abs(fit.temperature - 1) > 5 * fit.error
    assert not fit.fits


def test_a_cut_beyond_what_is_looked_at_changes_nothing():
    fit = fitted(state_of(kept_top_k(OWN, 20)))
    assert fit is not None
    assert abs(fit.temperature - 1) < 4 * fit.error


@pytest.mark.parametrize(("temperature", "end"), [(0.05, 0.125), (6.0, 4.0)])
def test_beyond_the_grid_its_end_is_told(temperature, end):
    fit = fitted(state_of(tempered(OWN, temperature)))
    assert fit is not None
    assert fit.extreme
    assert not fit.fits
    assert fit.temperature == pytest.approx(end)


def test_at_most_one_likelihood_in_a_hundred_is_a_hundred():
    """Each has mean 1 under the sampler, so that Markov bounds it; 60 draws of 800 tokens."""
    world = cast(Mixture, CLEAN_WORLDS["smooth"](1))
    gains = np.array([log_likelihoods(state_of(world.log_probs["rollout"], seed, world))
                      for seed in range(60)])  # fmt: skip
    assert (gains[:, RAW] == 0).all()
    assert (np.logaddexp.reduce(gains, axis=1) - np.log(len(EXPONENTS)) > np.log(100)).sum() <= 3


def test_rounding_moves_every_likelihood_but_that_of_1():
    lost = rounding(state_of(OWN), 2.0**-9, 4e-5)
    assert lost[RAW] == 0
    assert (np.delete(lost, RAW) > 0).all()


def test_nothing_is_fitted_to_nothing():
    columns = WORLD.sample(np.random.default_rng(0))
    assert fitted(TemperedState.of(columns, "rollout")) is None
