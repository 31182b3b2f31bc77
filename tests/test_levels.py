from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.levels import Totals, segment_sums, totals
from kullback.question import LEVELS

PROPERTY = settings(derandomize=True, deadline=None)
JUNK = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, -9999.0]

# Sequences of (value, counts); where it does not count, anything may stand.
sequences = st.lists(
    st.lists(st.tuples(st.floats(-100, 100), st.booleans(), st.sampled_from(JUNK)), max_size=5),
    max_size=6,
)


def by_hand(rows: list[list[float]]) -> dict[str, float]:
    filled = [row for row in rows if row]
    if not filled:
        return dict.fromkeys(LEVELS, float("nan"))
    total = sum(sum(row) for row in filled)
    return {
        "token_mean": total / sum(len(row) for row in filled),
        "sequence_sum": total / len(filled),
        "sequence_mean": sum(sum(row) / len(row) for row in filled) / len(filled),
    }


def close(found: Totals, expected: dict[str, float]) -> None:
    for level, value in expected.items():
        assert found.at(level) == pytest.approx(value, rel=1e-12, abs=1e-10, nan_ok=True)


def test_the_three_levels_of_three_rows() -> None:
    rows = [0.5, 0.1, *[0.2] * 7, 0.6, 1.0]
    found = totals(rows, lengths=[2, 8, 1])
    assert found.at("token_mean") == pytest.approx(0.32727272727272727, rel=1e-15)
    assert found.at("sequence_mean") == pytest.approx(0.5166666666666667, rel=1e-15)
    assert found.at("sequence_sum") == pytest.approx(1.2, rel=1e-15)


def test_micro_batches_are_pooled_and_their_means_are_not_averaged() -> None:
    parts = [totals([[total / n] * n]) for total, n in ((3.0, 3), (2.0, 20), (0.9, 1))]
    pooled = parts[0] + parts[1] + parts[2]
    assert pooled.at("token_mean") == pytest.approx(0.24583333333333335, rel=1e-15)
    mean_of_means = sum(part.at("token_mean") for part in parts) / 3
    assert mean_of_means == pytest.approx(0.6667, abs=1e-4)
    assert pooled.at("sequence_mean") == pytest.approx(mean_of_means)


@PROPERTY
@given(sequences, st.randoms(use_true_random=False))
def test_padding_packing_order_and_junk_change_nothing(tokens, order) -> None:
    expected = by_hand([[v for v, counts, _ in row if counts] for row in tokens])
    flat = [v if counts else junk for row in tokens for v, counts, junk in row]
    mask = [counts for row in tokens for _, counts, _ in row]
    close(totals(flat, mask=mask, lengths=[len(row) for row in tokens]), expected)

    packed = [[v for v, counts, _ in row if counts] for row in tokens]
    order.shuffle(packed)
    flat = [v for row in packed for v in row]
    close(totals(flat, lengths=[len(row) for row in packed]), expected)

    padded = np.full((len(packed), 6), JUNK)
    mask = np.zeros(padded.shape)
    for row, values in enumerate(packed):
        place = slice(6 - len(values), 6) if row % 2 else slice(len(values))  # on either side
        padded[row, place], mask[row, place] = values, 1
    close(totals(padded, mask=mask), expected)


@PROPERTY
@given(sequences, st.integers(0, 6))
def test_totals_of_two_parts_add_to_those_of_the_whole(tokens, cut: int) -> None:
    def part(rows) -> Totals:
        flat = [(v, counts) for row in rows for v, counts, _ in row]
        return totals(
            [v for v, _ in flat], mask=[c for _, c in flat], lengths=[len(row) for row in rows]
        )

    whole, both = part(tokens), part(tokens[:cut]) + part(tokens[cut:])
    assert (both.tokens, both.sequences) == (whole.tokens, whole.sequences)
    assert both.total == pytest.approx(whole.total, abs=1e-10)
    assert both.sequence_means == pytest.approx(whole.sequence_means, abs=1e-10)


def test_single_precision_is_summed_in_double() -> None:
    # 2^24 + 1 is no float32.
    assert totals(np.array([[2.0**24, 1.0]], dtype=np.float32)).total == 2**24 + 1


def test_nothing_to_average_is_nan() -> None:
    for level in LEVELS:
        assert np.isnan(totals([[1.0, 2.0]], mask=[[0, 0]]).at(level))


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="'batch' is none of token_mean, sequence_sum, sequence_"):
        totals([[1.0]]).at("batch")


@PROPERTY
@given(st.lists(st.integers(0, 4), max_size=8), st.integers(0, 2))
def test_segment_sums_are_sums_of_segments(lengths: list[int], rows: int) -> None:
    values = np.arange(rows * sum(lengths), dtype=np.float64).reshape(rows, sum(lengths))
    cuts = np.cumsum([0, *lengths])
    expected = [[row[a:b].sum() for a, b in pairwise(cuts)] for row in values]
    found = segment_sums(values, np.array(lengths, dtype=np.int64))
    assert found.shape == (rows, len(lengths))
    assert found.tolist() == expected


def test_one_length_for_all_is_a_number_of_any_kind(library) -> None:
    flat = library.array([1.0, 2.0, 3.0, 4.0])
    for length in (2, np.int64(2)):
        found = totals(flat, lengths=length)
        assert (float(found.total), float(found.sequence_means)) == (10.0, 5.0)


def test_lists_of_totals_can_be_summed() -> None:
    parts = [totals([[1.0, 2.0]]), totals([[3.0]]), totals([[4.0, 5.0, 6.0]])]
    assert sum(parts) == parts[0] + parts[1] + parts[2]
    with pytest.raises(TypeError):
        sum(parts, start=1)


def test_lengths_that_are_known_here_are_looked_at_in_any_library(library) -> None:
    with pytest.raises(ValueError, match=r"add up to 19, but there are 9 .*cu_seqlens"):
        totals(library.array(np.ones(9)), lengths=[0, 3, 7, 9])
