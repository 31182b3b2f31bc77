from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.estimation.histogram import Histogram

PROPERTY = settings(derandomize=True, deadline=None, max_examples=50)
LEVELS = (0.01, 0.05, 0.5, 0.95, 0.99, 0.999)
values = st.lists(st.floats(-60, 60, width=32, allow_subnormal=False), max_size=30)

rng = np.random.default_rng(0)
SAMPLES = {
    "cauchy": 1e-3 * rng.standard_cauchy(20_001),
    "normal": 1e-6 * rng.normal(size=20_001),
    "pareto": -(rng.pareto(0.7, size=20_001) + 1e-4),
    "half zero": np.where(rng.random(20_001) < 0.6, 0.0, rng.normal(0.1, 2, size=20_001)),
}


def order_statistics(sample: np.ndarray) -> np.ndarray:
    """The smallest value below or at which the share of each level lies."""
    return np.sort(sample)[[int(np.ceil(level * len(sample))) - 1 for level in LEVELS]]


@pytest.mark.parametrize("name", SAMPLES)
def test_quantiles_are_order_statistics(name: str) -> None:
    """Half a bin is 2^-8 of a value; functions of it stretch that by their own slope."""
    log_r = SAMPLES[name]
    histogram = Histogram.of(log_r)
    for of in (lambda x: x, lambda x: -x, np.abs):
        exact = order_statistics(of(log_r))
        assert np.array(histogram.quantiles(LEVELS, of)) == pytest.approx(exact, rel=2**-8, abs=0)
    k2 = order_statistics(0.5 * log_r**2)
    found = histogram.quantiles(LEVELS, lambda x: 0.5 * x * x)
    assert np.array(found) == pytest.approx(k2, rel=2.01 * 2**-8, abs=0)


@pytest.mark.parametrize("name", ["cauchy", "half zero"])
def test_quantiles_of_k3_are_order_statistics(name: str) -> None:
    log_r = SAMPLES[name][np.abs(SAMPLES[name]) < 20]
    histogram = Histogram.of(log_r)

    def k3(x: np.ndarray) -> np.ndarray:
        return np.expm1(x) - x

    exact = order_statistics(k3(log_r))
    # |d log k3 / d log |x|| is at most 2 below 0 and max(2, x + 1) above it.
    stretch = np.maximum(2, order_statistics(np.abs(log_r)) + 1)
    found = np.array(histogram.quantiles(LEVELS, k3))
    assert (np.abs(found - exact) <= 1.02 * stretch * 2**-8 * exact + 1e-300).all()


@PROPERTY
@given(values, st.integers(0, 30))
def test_tables_add_exactly(log_r: list[float], cut: int) -> None:
    whole = Histogram.of(np.array(log_r))
    both = Histogram.of(np.array(log_r[:cut])) + Histogram.of(np.array(log_r[cut:]))
    assert np.array_equal(both.counts, whole.counts)
    assert (both.low, both.high, both.below, both.above) == (
        whole.low,
        whole.high,
        whole.below,
        whole.above,
    )


@PROPERTY
@given(values)
def test_the_ends_are_exact(log_r: list[float]) -> None:
    table = Histogram.of(np.array(log_r))
    assert table.counts.sum() == len(log_r)
    assert table.low == min(log_r, default=np.inf)
    assert table.high == max(log_r, default=-np.inf)
    assert table.below == max((x for x in log_r if x < 0), default=-np.inf)
    assert table.above == min((x for x in log_r if x >= 0), default=np.inf)


@PROPERTY
@given(values.filter(len))
def test_no_quantile_leaves_the_sample_and_k1_is_negative_where_r_exceeds_one(log_r) -> None:
    table = Histogram.of(np.array(log_r))
    found = table.quantiles((0.0, 0.3, 1.0), lambda x: x)
    assert min(log_r) <= found[0] <= found[1] <= found[2] <= max(log_r)
    assert table.negative_share_of_k1 == pytest.approx(np.mean(np.array(log_r) > 0))


def test_an_empty_table_has_no_quantile() -> None:
    empty = reduce(add, [Histogram.of(np.zeros(0))] * 2)
    assert np.isnan(empty.quantiles((0.5, 0.9), np.abs)).all()
    assert np.isnan(empty.negative_share_of_k1)


def test_values_beyond_single_precision_are_counted() -> None:
    table = Histogram.of(np.array([-1e300, -1.0, 2.0]))
    assert (table.counts.sum(), table.low, table.high) == (3, -1e300, 2.0)
    assert table.quantiles((0.5, 1.0), lambda x: x) == pytest.approx((-1.0, 2.0), rel=2**-8)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_filed_in_octaves_is_filed_right(name: str) -> None:
    log_r = SAMPLES[name].astype(np.float32).astype(np.float64)
    table = Histogram.of(log_r)
    edges = table.octaves()
    assert len(edges) <= 24
    assert edges[0] <= log_r.min()
    assert log_r.max() < edges[-1]
    counts, _ = np.histogram(log_r, edges)
    assert table.filed(edges).tolist() == counts.tolist()
    sizes, _ = np.histogram(log_r, edges, weights=np.abs(log_r))
    assert table.filed(edges, np.abs) == pytest.approx(sizes, rel=2**-8)


def test_the_smallest_octave_lies_below_the_median_and_zeros_have_one() -> None:
    edges = Histogram.of(np.array([0.5, 0.5, 0.5, -7.0])).octaves()
    assert edges.tolist() == [-8, -4, -2, -1, -0.5, -0.25, -0.125, 0.125, 0.25, 0.5, 1, 2, 4, 8]
    assert len(Histogram.of(np.zeros(5)).octaves()) == 0
    assert len(Histogram.of(np.zeros(0)).octaves()) == 0


def test_what_lies_outside_the_edges_is_filed_nowhere() -> None:
    table = Histogram.of(np.array([-1.0, 0.0, 1.0, 2.0]))
    assert table.filed(np.array([-0.5, 0.5, 2.0])).tolist() == [1, 1]


def test_values_beyond_float32_have_an_octave_and_no_infinite_edge() -> None:
    table = Histogram.of(np.array([-1e300, 1e-310, 1.7e308]))
    edges = table.octaves()
    assert np.isfinite(edges).all()
    assert table.filed(edges).sum() == 3
