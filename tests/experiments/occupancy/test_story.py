from __future__ import annotations

from typing import Any

import pytest

import kullback as kb
from kullback.experiments.occupancy import measure
from kullback.reporting.experiment import Table


def tables(part) -> list[Any]:
    return [one for one in part.shows if isinstance(one, Table)]


def test_the_answer_is_what_the_tables_say(made):
    one = made("occupancy")
    assert "from 0.32 % to 4.11 %" in one.answer
    (steps, enumeration) = tables(one.parts[0])
    assert steps.rows[-1][-2:] == pytest.approx((0.0031567, 0.0411395), rel=1e-4)
    assert steps.rows[-1][3] == pytest.approx(0.3987, abs=5e-5)  # 0.40 in docs/experiments.md
    path, cells, last = (row[1] for row in enumeration.rows)
    assert path > cells > last
    assert f"{path:.6g} by action KLs" in enumeration.caption


def test_what_is_said_of_paths_and_cells_holds(made):
    (steps, _) = tables(made("occupancy").parts[0])
    shares = [row[2] / row[1] for row in steps.rows]
    assert shares[0] > 0.5 > shares[1] > 0.48
    assert shares[-1] < 1 / 3


def test_what_is_said_of_the_bounds_holds():
    p, q = measure.old(), measure.even(measure.STEP_KL)
    # Which of the two crosses 1 at which horizon, and which is the tighter.
    assert measure.bounds(p, q, 1 - 1 / 400)[1] < 1 < measure.bounds(p, q, 1 - 1 / 402)[1]
    assert measure.bounds(p, q, 1 - 1 / 20)[0] < 1 < measure.bounds(p, q, 1 - 1 / 22)[0]
    for horizon in (2.1, 10, 1000):
        by_tv, by_kl = measure.bounds(p, q, 1 - 1 / horizon)
        assert by_kl < by_tv
    by_tv, by_kl = measure.bounds(p, q, 1 - 1 / 1.9)
    assert by_kl > by_tv


def test_a_tenth_of_the_kl_leaves_a_third_of_the_drift():
    moved = [
        float(kb.divergence(measure.occupancy(measure.old()), measure.occupancy(one), "tv"))
        for one in (measure.even(0.001), measure.even(0.01))
    ]
    assert round(moved[0] / moved[1], 2) == 0.30


def test_whose_states_decides(made):
    (table,) = tables(made("occupancy").parts[2])
    for _, _, olds, news, long_run, most in table.rows[1:]:
        assert 4.5 < news / olds < 6
        assert long_run <= most
    for row in table.rows[2:]:
        assert row[4] > 0.99 * row[5]
