from __future__ import annotations

import json

import numpy as np

from kullback.experiments.four_faces.dial import jump
from kullback.experiments.four_faces.measure import BROAD, LOGGED, P, bound, variance


def test_all_nine_figures_agree_digit_for_digit(made):
    printed = made("four-faces").printed
    assert [one.printed for one in printed] == [
        "0.595", "1.234", "1.273", "0.576", "1.567", "1.609", "0.51", "1.523", "26",
    ]  # fmt: skip
    assert all(one.agrees for one in printed)


def test_what_is_said_in_words_holds(made):
    ratio = BROAD / P
    k1, k3 = -np.log(ratio), ratio - 1 - np.log(ratio)
    assert round(variance(k3) / variance(k1)) == 28
    assert round(0.01 * np.log(0.01 / 1e-6), 2) == 0.09
    assert f"{bound(LOGGED, 8192):.0e}" == "5e-111"
    said = made("four-faces").answer
    assert "149 tokens" in said


def test_the_areas_of_both_figures_are_the_same_mean(made):
    k1, k3, _ = made("four-faces").parts[1].shows
    means = [sum(row["part"] for row in figure.rows) for figure in (k1, k3)]
    assert np.allclose(means, 1.2342643867505400)
    assert min(row["value"] for row in k3.rows) > 0


def test_the_dial_turns_through_all_orders(made):
    figure, five = made("four-faces").parts[4].shows
    beside, _ = figure.spec["concat"]
    turned = beside["layer"][-1]["data"]["values"]
    assert {row["at"] for row in turned} == {row["at"] for row in figure.rows}
    json.dumps(figure.vega(), allow_nan=False)
    assert len(five.spec["concat"]) == 5


def test_the_two_fits_about_the_leap_are_on_either_side_of_it(made):
    *_, five = made("four-faces").parts[4].shows
    highest = {}
    for row in five.rows:
        highest[row["name"]] = max(highest.get(row["name"], 0), row["value"])
    assert highest["α = 0.2"] > 2 * highest["α = 0.22"]
    assert abs(jump() - 0.21) < 0.01


def test_the_price_over_the_bars_is_the_term_of_what_is_ruled_out(made):
    figure, _ = made("four-faces").parts[3].shows
    bars, words = (layer for layer in figure.spec["concat"][0]["layer"])
    said = {(row["at"], row["name"]): row["said"] for row in words["data"]["values"]}
    assert said[3.0, "1"] == f"{0.49 * np.log(0.49 / 0.25e-3):.2g} nats"
    assert said[3.0, "2"] == f"{0.01 * np.log(0.01 / 0.25e-3):.2g} nats"
    assert {row["at"] for row in words["data"]["values"]} == {row["at"] for row in figure.rows}
    last = [row["value"] for row in figure.rows if row["series"].endswith("outer ruled out")]
    assert last[-2] > 13 > 3 > last[-1]
    assert "data" not in bars
