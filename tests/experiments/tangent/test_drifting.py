from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.tangent import steps
from kullback.experiments.tangent.drifting import BETA, STEP, drifting


def test_the_parts_are_those_of_the_story(made):
    titles = [part.title for part in made("tangent").parts]
    assert [part.title for part in drifting(0)] == titles[-4:]


def test_what_is_said_of_the_runs_holds(made):
    alone = steps.walk("natural")
    assert alone.moved() == 21
    assert round(alone.drift()[-1], 2) == 3.83
    assert sum(alone.taken()) == pytest.approx(0.21)
    assert "21 steps of 0.01 nats end 3.83 nats away" in made("tangent").answer
    assert [round(steps.kl(steps.leashed(beta), steps.REFERENCE), 1) for beta in (0.3, 0.1)] == [
        0.3,
        3.3,
    ]
    assert round(steps.walk("natural", BETA).drift()[-1], 2) == 0.96


def test_what_is_said_of_the_plane_holds():
    low, high = np.linalg.eigvalsh(steps.metric())
    assert round(np.sqrt(high / low), 1) == 4.3
    least, most = steps.on_circle(0.05)
    assert round(most / least) == 24
    # Up together lowers the third token: the curve is outside the ellipse there, inside opposite.
    curve, ellipse = (np.sum(shape(0.05), axis=1) for shape in (steps.equal_kl, steps.ellipse))
    assert max(curve) > max(ellipse)
    assert min(curve) > min(ellipse)


def test_steps_in_one_direction_add_up_as_a_square(made):
    (_, table) = made("tangent").parts[-1].shows
    for steps_taken, one_way, random, *_ in table.rows:
        count = int(steps_taken.replace(",", ""))
        assert one_way == pytest.approx(STEP * count**2)
        assert random == pytest.approx(STEP * count)
    assert "ten of 0.01 nats are 1," in made("tangent").parts[-1].says
