from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kullback.estimation.bins import MOST, low_ends, powers_of_two, width_for

numbers = st.floats(-1e300, 1e300)
samples = st.lists(
    st.one_of(st.integers(-(2**40), 2**40).map(float), numbers, st.floats(0, 1)),
    min_size=1,
    max_size=200,
)


@given(samples)
def test_width_is_the_smallest_that_leaves_at_most_64_bins(values):
    found = np.array(values)
    width = width_for(found)
    if width is None:
        assert len(np.unique(found)) <= MOST
        return
    assert len(np.unique(low_ends(found, width))) <= MOST
    assert width == -1074 or len(np.unique(low_ends(found, width - 1))) > MOST


@given(samples, st.integers(-60, 60))
def test_a_value_lies_in_its_bin_and_bins_start_at_multiples(values, width):
    found, size = np.array(values), 2.0**width
    ends = low_ends(found, width)
    assert (ends <= found).all()
    small = np.abs(found) < 2.0 ** (width + 51)
    assert (found[small] < ends[small] + size).all()
    assert (ends[small] / size == np.floor(ends[small] / size)).all()
    assert np.array_equal(low_ends(ends, width), ends)


@given(samples, st.integers(0, 200))
def test_bins_of_parts_are_those_of_the_whole(values, cut):
    """However the values were cut: the width of the whole, and the same lower ends."""
    whole = np.array(values)
    parts = [part for part in (whole[:cut], whole[cut:]) if len(part)]
    widths = [width_for(part) for part in parts]
    known = [width for width in widths if width is not None]
    widest = max(known) if known else None
    ends = np.concatenate([low_ends(p, w) for p, w in zip(parts, widths, strict=True)])
    width = width_for(low_ends(ends, widest), widest)
    assert width == width_for(whole)
    assert np.array_equal(low_ends(ends, width), low_ends(whole, width))


def test_the_ends_of_the_range_of_floats():
    tiny = np.array([-5e-324, 5e-324, -0.0, 1e-310])
    assert low_ends(tiny, 3).tolist() == [-8.0, 0.0, 0.0, 0.0]
    huge = np.array([1e308, -1e308, np.inf, -np.inf])
    assert low_ends(huge, -1000).tolist() == huge.tolist()


@pytest.mark.parametrize(
    ("values", "width"),
    [
        (range(64), None),
        (range(65), 1),
        (range(128), 1),
        (range(1, 130), 2),
        ([0.0, 1e9], None),
        (np.arange(100) / 1024, -9),
        ([], None),
    ],
)
def test_widths_that_a_person_would_choose(values, width):
    assert width_for(np.array(values, dtype=np.float64)) == width


def test_counts_go_by_powers_of_two():
    counts = np.arange(1025)
    ends = powers_of_two(counts)
    assert ends[:9].tolist() == [0, 1, 2, 2, 4, 4, 4, 4, 8]
    assert (ends[1:] <= counts[1:]).all()
    assert (counts[1:] < 2 * ends[1:]).all()
    assert set(ends[1:]) == {2.0**k for k in range(11)}
