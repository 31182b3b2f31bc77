from __future__ import annotations

import math

import pytest


def test_the_document_prints_nothing_on_it(made):
    assert made("controller").verdict() == "The document prints no number on this."


def test_the_answer_is_in_the_tables(made):
    answer = made("controller").answer
    assert "by 2.3% of its target" in answer
    assert "1.9 times the target" in answer
    assert "above 0.61" in answer


def test_what_controllers_do_with_what_they_are_told(made):
    rules, cut = made("controller").parts[5].shows
    factor = {row[0]: row[1:] for row in rules.rows}
    assert factor["−0.5 targets"][0] == factor["0.5 targets"][0] == pytest.approx(1 - 0.2 * 0.0256)
    assert factor["−0.5 targets"][1] < factor["0"][1] < factor["0.5 targets"][1]
    assert factor["40 targets"][0] == factor["infinite"][0] == pytest.approx(1 + 0.2 * 0.0256)
    assert math.isnan(factor["missing (NaN)"][0])
    shares = {row[0]: row[1:] for row in cut.rows}
    assert shares["smooth: k1 of 16"][0] == pytest.approx(0.08, abs=0.001)
    assert all(row[0] == 0 for name, row in shares.items() if "k3" in name)


def test_the_steps_to_nothing_and_to_overflow(made):
    says = made("controller").parts[5].says
    assert "halves every 135 steps" in says
    beta, steps = 1 / 0.3805862566619465, 0
    while beta < float("inf"):
        beta, steps = beta * (1 + 0.2 * 0.0256), steps + 1
    assert f"in {steps - 1:,} steps" in says or f"in {steps:,} steps" in says
