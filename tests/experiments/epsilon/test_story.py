from __future__ import annotations

import json

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.epsilon import measure
from kullback.experiments.epsilon.measure import ADDED, CANDIDATES, P


def test_what_is_said_in_words_holds(made):
    assert measure.missing(CANDIDATES["A"]) * np.log(10) == pytest.approx(0.184, abs=5e-4)
    rest = measure.repaired("A", ADDED, 1e-9) - 0.08 * np.log(1e9)
    assert round(rest, 3) == -0.279
    mixed = list(measure.REPAIRS)[-1]
    assert (measure.winner(ADDED, 3e-4), measure.winner(mixed, 3e-4)) == ("A", "B")
    assert round(measure.from_itself(1e-6), 3) == -0.141
    cut = list(measure.REPAIRS)[2]
    assert round(measure.from_itself(1e-5, cut), 3) == -0.418
    assert "ε = 1.2e-4, B's down to 1.7e-12" in made("epsilon").answer


def test_smoothing_p_leaves_the_kl_infinite():
    for q in CANDIDATES.values():
        smooth = 0.9 * P + 0.02
        assert kb.divergence(smooth, q) == kb.divergence(P, q) or measure.missing(q) == 0


def test_bounded_divergences_say_a_b_c_and_the_infinite_one_says_c(made):
    (table,) = made("epsilon").parts[5].shows
    for head in ("JSD", "skew KL"):
        place = table.heads.index(head)
        values = [row[place] for row in table.rows]
        assert values == sorted(values)
    assert [np.isfinite(row[2]) for row in table.rows] == [False, False, True]


def test_an_estimate_says_that_a_token_lies_outside():
    found = kb.estimate(
        log_p=np.log([0.4, 0.08, 0.3]), log_q=np.array([-1.0, -np.inf, -1.0]), lengths=1
    )
    assert "outside a support" in str(found)


def test_a_zero_that_is_none(made):
    (table,) = made("epsilon").parts[6].shows
    exact, single, added, gone = (row[1] for row in table.rows)
    assert exact == pytest.approx(0.006589446130024174, rel=1e-12)
    assert (single, gone) == (np.inf, 0.0)
    assert added == pytest.approx(exact, rel=1e-4)
    old = 1 / (1 + np.exp(-3.0)) * np.exp(-90.0)
    assert f"{old * 30:.0e}" == "2e-38"


def test_the_dial_turns_through_all_distances(made):
    (figure, _) = made("epsilon").parts[4].shows
    beside, _ = figure.spec["concat"]
    turned = beside["layer"][-1]["data"]["values"]
    assert {row["at"] for row in turned} == {row["at"] for row in figure.rows}
    json.dumps(figure.vega(), allow_nan=False)
