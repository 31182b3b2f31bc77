from __future__ import annotations

import json

import numpy as np
import pytest

from kullback.experiments.gradients.story import COLORS, TERMS
from kullback.reporting.figures import STYLES


def test_the_document_prints_nothing_on_it(made):
    assert made("gradients").verdict() == "The document prints no number on this."


def test_the_answer_is_in_the_tables(made):
    assert "from 960 of 968 starts" in made("gradients").answer
    *_, grid = made("gradients").parts[2].shows
    assert [row[1:] for row in grid.rows] == [(0, 0), (968, 968), (8, 0), (968, 968)]


def test_the_finding_of_every_figure_holds(made):
    forms, stale, alone, rewarded = made("gradients").parts
    error = {(row["series"], row["at"]): row["value"] for row in forms.shows[0].rows}
    assert max(error["k2 in the loss", 0.02], error["k3 in the loss", 0.02]) < 0.02
    assert error["k3 in the reward", 0.02] > 0.99
    right = {(row["name"], row["series"]) for row in stale.shows[0].rows if row["error"] < 1e-9}
    assert right == {
        ("weight held constant", "k2"), ("weight in the graph", "k1"), ("weight in the graph", "k3")
    }  # fmt: skip
    (dial, *_), (other, ends) = alone.shows, rewarded.shows
    for figure in (dial, other):
        kls = {row["series"]: row["value"] for row in figure.rows if row["at"] == 100}
        assert max(kls, key=kls.__getitem__) == "k3 in the reward"
    assert ends.rows[2][1] == pytest.approx(1, abs=1e-6)


def test_bars_are_policies_at_every_step(made):
    for part in made("gradients").parts[2:]:
        beside, _ = part.shows[0].spec["concat"]
        bars = beside["data"]["values"]
        for name in COLORS:
            mass = [row["value"] for row in bars if row["series"] == name]
            assert np.reshape(mass, (101, 4)).sum(axis=1) == pytest.approx(1)
        json.dumps(part.shows[0].vega(), allow_nan=False)


def test_a_term_has_one_color_everywhere():
    assert [COLORS[name] for name in TERMS] == [color for color, _, _ in STYLES[: len(TERMS)]]


def test_of_a_stale_sampler_the_right_ones_are_right_near_and_far(made):
    _, table = made("gradients").parts[1].shows
    told = {row[0]: row[1:] for row in table.rows}
    for name in ("k2, weight held constant", "k1, weight in the graph", "k3, weight in the graph"):
        assert told[name] == pytest.approx((1, 1, 0, 1, 1, 0), abs=1e-9)
    cosine, length, *_ = told["k1, no weight"]
    assert cosine < 0
    assert length > 2.9
