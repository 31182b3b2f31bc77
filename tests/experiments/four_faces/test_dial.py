from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.four_faces import dial


def test_at_1_the_fit_has_the_mean_and_the_variance_of_the_target():
    fit = dial.best(1.0)
    assert fit.mean == pytest.approx(-0.4, abs=1e-5)
    assert fit.sd == pytest.approx(np.sqrt(0.7**2 + 0.6 * 0.4 * 4**2), rel=1e-5)


def test_at_0_it_sits_on_the_taller_mode():
    fit = dial.best(0.0)
    assert fit.mean == pytest.approx(-2.0, abs=0.05)
    assert fit.sd == pytest.approx(dial.SD, abs=0.05)
    # The other mode is a worse optimum: nothing of the taller one is seen from it.
    assert fit.divergence < dial.fitted(0.0, (2.0, dial.SD)).divergence


def test_the_best_fit_leaps_where_both_branches_are_equally_good():
    leap = dial.jump()
    narrow, broad = (dial.fitted(leap, start) for start in (dial.NARROW, dial.BROAD))
    assert narrow.divergence == pytest.approx(broad.divergence, rel=1e-5)
    assert broad.sd > 2 * narrow.sd
    below, above = (dial.best(round(order, 2)) for order in (leap - 0.016, leap + 0.004))
    assert below.sd < 1 < above.sd


def test_no_other_start_finds_a_better_fit():
    for order in (0.0, 0.2, 0.5, 1.0):
        best = dial.best(order).divergence
        for start in ((-2.0, 0.4), (0.0, 1.0), (0.0, 3.0), (2.0, 0.7), (-1.0, 2.0)):
            assert dial.fitted(order, start).divergence >= best - 1e-9
