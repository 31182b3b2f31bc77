from __future__ import annotations

import json

import pytest

from kullback.experiments.controller.swinging import DRAWN


def test_below_the_critical_gain_all_is_noise_and_above_it_nothing(made):
    figure, table = made("controller").parts[2].shows
    assert "0.61" in figure.title
    for gain, exact, k1, k3, of_k1, of_k3 in table.rows:
        if float(gain) < 0.6:
            assert (of_k1, of_k3) == (1, 1)
            assert exact == 0 < k3 < k1
        if float(gain) >= 1:
            assert exact == pytest.approx(k1, rel=0.1)
            assert exact == pytest.approx(k3, rel=0.1)
    json.dumps(figure.vega(), allow_nan=False)


def test_the_rule_that_doubles_swings_without_noise_once_it_is_off_its_band(made):
    figure, table = made("controller").parts[3].shows
    assert list(dict.fromkeys(row["series"] for row in figure.rows)) == list(DRAWN)
    told = {row[0]: row[1:] for row in table.rows}
    assert told["exact, from the target"] == pytest.approx((1, 0, 1, 1, 0))
    assert told["exact, from half the target"][-1] == 1
    assert told["k1 of 256, from the target"][-1] == 1
    assert told["k3 of 256, from the target"] == pytest.approx((1, 0, 1, 1, 0))
    sds = [told[name][1] for name in ("exact, from half the target", "k1 of 256, from the target")]
    assert sds[0] == pytest.approx(sds[1], rel=0.05)


def test_the_gradient_s_noise_beside_the_estimate_s_is_as_predicted(made):
    part = made("controller").parts[4]
    figure, table = part.shows
    at = {(row["series"], row["at"]): row["value"] for row in figure.rows}
    assert at["k1", 1.0] == pytest.approx(0.55, abs=0.01)
    assert at["k3", 1.0] < 0.2 < 0.9 < at["k3, before a hole", 1.0]
    for _, _, _, predicted, drawn, z in table.rows:
        assert drawn == pytest.approx(predicted, abs=0.1)
        assert abs(z) < 5
