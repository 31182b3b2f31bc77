from __future__ import annotations

from collections import Counter

from kullback.estimation.keyed import added, commonest


def test_entries_of_either_side_stay_and_those_of_both_add():
    one, other = {"old": 2, "new": 1}, {"old": 3, "far": 4}
    assert added(one, other) == {"old": 5, "new": 1, "far": 4}
    assert added({}, one) == added(one, {}) == one


def test_of_equals_the_first_are_kept():
    assert list(commonest(Counter("abbacd"), 3)) == ["a", "b", "c"]
