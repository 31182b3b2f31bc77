from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.tangent import family, steps
from kullback.experiments.tangent.story import BETA


def test_three_of_four_printed_numbers_agree_and_one_is_a_tie(made):
    printed = made("tangent").printed
    assert [one.printed for one in printed] == ["1", "1", "0.002", "0.25"]
    (odd,) = [one for one in printed if not one.agrees]
    assert round(odd.ours, 10) == 0.0025
    assert "tie" in odd.why


def test_what_is_said_of_the_second_order_holds():
    kl = family.GAPS["KL(p‖q)"]
    found = [family.ratio(kl, 0.01, t) - 1 for t in (0.28, 0.30)]
    assert found[0] < 0.1 < found[1]
    limits = [
        family.good_until(lambda t, share=share: family.ratio(kl, share, t) - 1, share) or 0.0
        for share in (0.01, 0.001)
    ]
    assert limits[0] / limits[1] == pytest.approx(10, rel=0.05)  # in proportion to the share
    t = np.interp(0.01, [family.mean(kl, family.raised(0.01, t)) for t in (1.0, 1.1, 1.2)],
                  [1.0, 1.1, 1.2])  # fmt: skip
    assert family.ratio(kl, 0.01, float(t)) == pytest.approx(1.5, abs=0.03)


def test_what_is_said_of_the_runs_holds(made):
    alone = steps.walk("natural")
    assert sum(taken > 0 for taken in alone.taken()) == 21
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


def test_each_dial_has_what_turns_at_every_setting(made):
    dials = [
        one
        for part in made("tangent").parts
        for one in part.shows
        if "concat" in getattr(one, "spec", {})
    ]
    assert len(dials) == 3
    for one in dials:
        beside, _ = one.spec["concat"]
        rows = beside.get("data", beside["layer"][-1].get("data"))["values"]
        assert {row["at"] for row in rows} == {row["at"] for row in one.rows}
