from __future__ import annotations

import pytest

from kullback.experiments.gaussian import measure


def test_one_printed_digit_differs_and_why(made):
    one = made("gaussian")
    assert len(one.printed) == 14
    (odd,) = [printed for printed in one.printed if not printed.agrees]
    assert (odd.printed, round(odd.ours, 12)) == ("0.002", 0.0025)
    assert "tie" in odd.why


def test_what_is_said_in_words_holds():
    """The numbers that stand in sentences of the story."""
    near, far = (measure.pair((shift, 1.0), (0.0, 1.0)) for shift in (0.1, 2.5))
    assert round(near.k1 / near.k3) == 199
    assert round(far.k3 / far.k1) == 82
    assert far.kl == pytest.approx(3.125)
    assert near.k1 / (0.1 * near.kl) ** 2 == pytest.approx(40_000)
    assert round(near.k3 / (0.1 * near.kl) ** 2) == 201
    one = measure.moments(measure.kb.other_direction, (1.0, 1.0), (0.0, 1.0))
    assert round(one.variance / measure.pair((1.0, 1.0), (0.0, 1.0)).k1) == 3


def test_it_does_not_depend_on_the_seed_what_is_exact(made):
    first, second = made("gaussian"), made("gaussian", 1)
    assert first.answer == second.answer
    assert [one.ours for one in first.printed] == [one.ours for one in second.printed]
    assert first.parts[0].shows[0].rows != second.parts[0].shows[0].rows
