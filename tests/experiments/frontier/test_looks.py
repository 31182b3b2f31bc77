from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.frontier.looks import (
    ESTIMATORS,
    auto,
    checkpoints,
    exact_stop,
    logged,
    stops,
    top,
    z_scores,
)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_the_mean_of_the_kl(name):
    for one in checkpoints():
        assert one.p @ one.values[name] == pytest.approx(one.kl, abs=1e-11)


@pytest.mark.parametrize("seed", [0, 1])
def test_logged_kls_scatter_as_their_exact_errors_say(seed):
    assert np.max(np.abs(z_scores(seed))) < 5


def test_exact_errors_are_the_spread_of_the_logged():
    for place, one in enumerate(checkpoints()[:13]):
        for name in ("k1", "Rao-Blackwell"):
            spread = logged(0)[name][:, place].std()
            assert spread == pytest.approx(one.error(name), rel=0.06, abs=1e-12)


def test_a_run_stops_at_the_first_reading_above_the_limit():
    read = np.array([[0.1, 0.9, 0.2, 2.0], [0.1, 0.2, 0.3, 0.4], [3.0, 0.0, 0.0, 0.0]])
    assert stops(read, 0.8).tolist() == [1, 3, 0]


def test_the_exact_stop_is_the_first_checkpoint_past_the_limit():
    at = exact_stop(3.0)
    assert checkpoints()[at - 1].kl <= 3.0 < checkpoints()[at].kl
    assert exact_stop(100.0) == len(checkpoints()) - 1


def test_the_kl_climbs_and_the_gold_reward_bends_over():
    kls = [one.kl for one in checkpoints()]
    assert kls == sorted(kls)
    assert checkpoints()[0].gold < top().gold > checkpoints()[-1].gold


def test_the_estimate_of_a_batch_is_between():
    bias, error = auto(50, 0)
    best = checkpoints()[10]
    assert abs(bias) < error
    assert best.error("Rao-Blackwell") < error < best.error("k1") < best.error("k3")
