from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kullback.arrays import to_numpy
from kullback.losses.along import Along

LENGTHS = [3, 1, 4]
ROWS = [[0.5, -1.0, 2.0], [7.0], [1.0, 2.0, 3.0, 4.0]]
FLAT = [one for row in ROWS for one in row]


def padded() -> list[list[float]]:
    return [row + [0.0] * (4 - len(row)) for row in ROWS]


def joined(rows: list[np.ndarray]) -> list[float]:
    return np.concatenate(rows).tolist()


EXPECTED = {
    "to_here": joined([np.cumsum(row) for row in ROWS]),
    "from_here": joined([np.cumsum(row[::-1])[::-1] for row in ROWS]),
    "whole": joined([np.full(len(row), sum(row)) for row in ROWS]),
}


def _sum(values: Any, lengths: Any, xp: Any, which: str) -> Any:
    return getattr(Along(values, lengths, xp), which)(values)


@pytest.mark.parametrize("sums", EXPECTED)
def test_packed_and_padded_rows_have_the_same_sums(library, sums):
    lengths = library.xp.asarray(LENGTHS)
    packed = _sum(library.array(FLAT), lengths, library.xp, sums)
    assert to_numpy(packed, "").tolist() == EXPECTED[sums]
    grid = _sum(library.array(padded()), None, library.xp, sums)
    kept = np.arange(4) < np.array(LENGTHS)[:, None]
    assert to_numpy(grid, "")[kept].tolist() == EXPECTED[sums]


def test_an_infinity_stays_in_its_sequence(library):
    values = library.array([np.inf, 1.0, 2.0, 3.0])
    along = Along(values, library.xp.asarray([2, 2]), library.xp)
    assert to_numpy(along.to_here(values), "").tolist() == [np.inf, np.inf, 2.0, 5.0]
    assert to_numpy(along.from_here(values), "").tolist() == [np.inf, 1.0, 5.0, 3.0]


def test_an_empty_sequence_between_two_is_passed_over(library):
    ones = library.array([1.0, 1.0, 1.0])
    along = Along(ones, library.xp.asarray([2, 0, 1]), library.xp)
    assert to_numpy(along.to_here(ones), "").tolist() == [1.0, 2.0, 1.0]


def test_a_sum_can_be_traced_and_differentiated(traceable):
    lengths = traceable.xp.asarray(LENGTHS)

    def squared(values):
        return (Along(values, lengths, traceable.xp).to_here(values) ** 2).sum()

    values = traceable.array(FLAT)
    slope = traceable.traced(traceable.gradient(lambda x: squared(x)))(values)[0]
    to_here = np.array(EXPECTED["to_here"])
    ends = np.cumsum(LENGTHS)
    rows = np.split(2 * to_here, ends[:-1])
    assert to_numpy(slope, "").tolist() == joined([np.cumsum(row[::-1])[::-1] for row in rows])


@pytest.mark.parametrize("lengths", [3, [], [[1, 2]]])
def test_lengths_are_one_number_for_each_sequence(lengths):
    with pytest.raises(ValueError, match="the number of tokens of each sequence"):
        Along(np.ones(3), lengths, np)
