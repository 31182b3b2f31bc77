from __future__ import annotations

from typing import Any

import pytest

from kullback.experiments.occupancy.clipping import STOP, clipping
from kullback.experiments.occupancy.directions import EVERYWHERE, jumps, of_size
from kullback.reporting.experiment import Table


def tables(part) -> list[Any]:
    return [one for one in part.shows if isinstance(one, Table)]


def test_the_parts_are_the_last_of_the_story(made):
    titles = [part.title for part in made("occupancy").parts]
    assert [part.title for part in clipping(0)] == titles[-3:]


def test_equal_kl_has_any_clip_fraction_and_any_drift(made):
    updates, still = tables(made("occupancy").parts[3])
    first = updates.rows[:3]
    assert [round(row[1], 2) for row in first] == [0, 0.03, 0.10]
    assert [round(row[3], 2) for row in first] == [0.99, 0.99, 0.99]
    assert [round(row[6], 2) for row in first] == [0.28, 0.12, 0.03]
    for row in updates.rows[4:]:  # few cells, at 0.02 nats
        assert row[5] < row[4] / 2
    assert len({round(row[1], 9) for row in still.rows}) == 1
    assert still.rows[-1][2] / still.rows[0][2] == pytest.approx(99.7, abs=0.1)


def test_a_stop_at_a_kl_comes_before_the_clip():
    begins, everything = jumps(EVERYWHERE)
    assert begins > STOP
    assert (round(begins, 3), round(everything, 3)) == (0.016, 0.024)
    assert of_size(EVERYWHERE, STOP).clipped == 0


def test_what_is_said_of_cut_products_holds(made):
    (table,) = tables(made("occupancy").parts[4])
    last = {row[0]: row for row in table.rows if row[0].startswith("300")}
    assert last["300, whole"][2] == pytest.approx(0.0493, abs=5e-5)
    assert [last[f"300, cut at {cut}"][5] for cut in (10, 2)] == ["−58 %", "−87 %"]
    whole, cut = last["300, whole"], last["300, cut at 2"]
    at_100 = next(row for row in table.rows if row[0] == "100, cut at 2")
    assert cut[3] == pytest.approx(at_100[3], rel=0.01)  # stands still
    assert whole[3] > 8 * cut[3]
    figure = made("occupancy").parts[4].shows[0]
    assert "finds 42 %" in figure.title


def test_what_episodes_say_is_told_with_its_error(made):
    (table,) = tables(made("occupancy").parts[5])
    assert all(abs(row[-1]) < 5 for row in table.rows)
    assert "9 · 10¹⁴" in made("occupancy").parts[5].says
