from __future__ import annotations

import json

import numpy as np
import pytest

from kullback.experiments.frontier import looks, reading


def test_what_is_said_of_the_logged_kl_holds(made):
    k1, k3, exact = ({one.step: one.error(name) for one in looks.checkpoints()}
                     for name in looks.ESTIMATORS)  # fmt: skip
    kl = {one.step: one.kl for one in looks.checkpoints()}
    for step in kl:
        if 0 < kl[step] < 2:
            assert k3[step] < k1[step]
        if kl[step] > 2.5:
            assert k3[step] > k1[step] > 3 * exact[step]
    for place, one in enumerate(looks.checkpoints()):
        if one.kl > 4:
            assert np.mean(looks.logged(0)["k3"][:, place] < one.kl) > 0.5


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_said_of_the_stops_holds(seed):
    golds = np.array([one.gold for one in looks.checkpoints()])
    for limit in (5.0, 6.0, 7.0):
        exact = looks.exact_stop(limit)
        k1, k3, steady = (looks.stops(looks.logged(seed)[name], limit) for name in looks.ESTIMATORS)
        assert k3.mean() < k1.mean() < exact + 1
        assert k3.std() > k1.std() > steady.std()
        assert golds[k3].mean() > golds[k1].mean() > golds[exact]
    for limit in (3.0, 3.5):  # the KL climbs steeply
        for read in looks.logged(seed).values():
            assert np.quantile(abs(looks.stops(read, limit) - looks.exact_stop(limit)), 0.95) <= 2


def test_every_setting_of_the_slider_has_every_reading(made):
    stop = made("frontier").parts[-1].shows[0]
    beside, _ = stop.spec["concat"]
    turned = beside["layer"][-1]["data"]["values"]
    readings = len(looks.ESTIMATORS) + 1
    assert len(stop.rows) == readings * len(reading.LIMITS)
    assert len(turned) == readings * len(reading.LIMITS) * len(looks.STEPS_LOGGED)
    assert reading.GENEROUS in reading.LIMITS
    assert {row["series"] for row in turned} < set(reading.READ)
    json.dumps(stop.vega(), allow_nan=False)


def test_a_share_that_has_stopped_only_grows(made):
    beside, _ = made("frontier").parts[-1].shows[0].spec["concat"]
    turned = beside["layer"][-1]["data"]["values"]
    for name in (*looks.ESTIMATORS, "exact KL"):
        parts = [row["value"] for row in turned if row["series"] == name and row["at"] == 5.0]
        assert parts == sorted(parts)
        assert parts[-1] == 1
