from __future__ import annotations

import pytest

from kullback.lengths import grid, not_adding_up, sequence_lengths


@pytest.mark.parametrize(
    ("shape", "lengths", "found"),
    [
        ((2, 3), None, [3, 3]),
        ((6,), 2, [2, 2, 2]),
        ((6,), [4, 0, 2], [4, 0, 2]),
        ((0,), [], []),
    ],
)
def test_the_lengths_of_each_shape(shape, lengths, found):
    assert sequence_lengths(shape, lengths).tolist() == found


@pytest.mark.parametrize(
    ("shape", "lengths", "said"),
    [
        ((2, 3), 3, "lengths go with flat arrays"),
        ((6,), None, "flat log-probs need lengths="),
        ((6,), 4, "6 tokens are no whole number of sequences of 4"),
        ((6,), 0, "whole numbers of tokens"),
        ((6,), [4, -1, 3], "whole numbers of tokens"),
        ((6,), [1.5, 4.5], "whole numbers of tokens"),
        ((6,), [4, 3], "the lengths add up to 7, but there are 6 tokens"),
        ((6,), [0, 4, 6], "running sums"),
        ((1, 2, 3), None, r"are \[sequences, tokens\] or flat"),
    ],
)
def test_what_does_not_go_together_is_refused(shape, lengths, said):
    with pytest.raises(ValueError, match=said):
        sequence_lengths(shape, lengths)


def test_a_grid_has_rows_and_columns():
    assert grid((2, 3), None) == (2, 3)
    assert grid((6,), 1) == (6, 1)


def test_one_sequence_is_no_running_sum():
    assert "running" not in not_adding_up([4], 6)
