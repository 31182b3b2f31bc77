from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.tangent import family


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
