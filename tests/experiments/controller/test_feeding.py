from __future__ import annotations

import json

import numpy as np
import pytest

from kullback.experiments.controller.feeding import spelled


def test_unrest_is_as_predicted_and_falls_with_the_batch(made):
    noise = made("controller").parts[0]
    dial, lines, table = noise.shows
    sds = {(row["series"], row["at"]): row["value"] for row in dial.rows}
    for power in range(4, 15):
        assert sds["exact", power] == 0
        assert sds["k3", power] < sds["k1", power]
    for row in lines.rows:
        if row["at"] >= 64:
            assert row["sampled"] == pytest.approx(row["value"], rel=0.15)
    flat = [row["value"] for row in lines.rows if row["series"] == "k1, gain n/10,000"]
    assert flat == sorted(flat)  # a larger batch does not calm it
    assert all(abs(row[3]) < 5 for row in table.rows if row[3] is not None)
    assert "within |z| ≤ 2.7 of" in noise.says


def test_k3_before_a_hole_doubles_the_kl_where_k1_holds_it(made):
    dial, coefficients, pushes, table = made("controller").parts[1].shows
    means = {(row["series"], row["at"]): row["value"] for row in dial.rows}
    assert means["k3", 4] == pytest.approx(2, abs=0.01)
    assert means["k3", 6] > 1.8
    assert 1.05 < means["k3", 8] < 1.2
    assert means["k3", 14] == pytest.approx(1, abs=0.01)
    assert all(0.85 < means["k1", power] < 1.01 for power in range(4, 15))
    last = {row["series"]: row["value"] for row in coefficients.rows}
    assert last["k3"] < 0.35 < 0.9 < last["k1"]
    told = {row[0]: row for row in table.rows}
    assert told["k3 of 64"][3] == "0.943 or 2.000"
    assert told["auto of 64"][1] < 1
    assert told["k3 of 256"][4] == pytest.approx(1, abs=0.02)
    assert told["k3 of 16"][4] > 1.5
    crossings = [row["value"] for row in pushes.rows if row["series"] == "k3 of 64"]
    assert int(np.sum(np.diff(np.sign(crossings)) > 0)) == 2


def test_pictures_are_data_alone(made):
    for part in made("controller").parts[:2]:
        for figure in part.shows[:-1]:
            json.dumps(figure.vega(), allow_nan=False)


def test_a_vector_has_a_true_minus():
    assert spelled(np.array([-8.0, 0.5])) == "(−8, 0.5)"
