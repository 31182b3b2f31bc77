from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.estimation import repeat_state
from kullback.estimation.repeat_state import RepeatState


def batch(sequences: int = 20, length: int = 80, seed: int = 0) -> Columns:
    """Rows that cost 160 nats or so."""
    rng = np.random.default_rng(seed)
    columns = pack({"p": -rng.gamma(1.0, 2.0, size=(sequences, length))})
    return replace(columns, tokens=rng.integers(0, 9, size=len(columns)), source="a")


def of(columns: Columns, *rows: int) -> RepeatState:
    return RepeatState.of(columns.take(np.array(rows)), "p")


def test_rows_that_are_there_twice_are_counted_with_their_place() -> None:
    columns = batch()
    state = of(columns, 0, 3, 1, 3, 3, 0)
    assert (state.checked, state.copies) == (6, 3.0)
    assert [str(place) for place in state.places] == ["a, row 3, token 0", "a, row 0, token 0"]
    assert of(columns, *range(20)).copies == 0


@pytest.mark.parametrize("change", ["token", "log_prob", "length", "order"])
def test_rows_that_differ_are_no_copies(change: str) -> None:
    columns = batch(2).take(np.array([0, 0]))
    assert columns.tokens is not None
    values, tokens = columns.log_probs["p"].copy(), columns.tokens.copy()
    lengths = columns.lengths
    if change == "token":
        tokens[5] += 1
    elif change == "log_prob":
        values[5] = np.nextafter(values[5], 0)
    elif change == "length":
        values, tokens, lengths = values[1:], tokens[1:], np.array([79, 80])
        values[:79], tokens[:79] = values[79:158], tokens[79:158]
    else:
        values[[5, 6]], tokens[[5, 6]] = values[[6, 5]], tokens[[6, 5]]
    other = replace(
        columns,
        lengths=lengths,
        log_probs={"p": values},
        tokens=tokens,
        mask=np.ones(len(values), dtype=bool),
    )
    assert RepeatState.of(columns, "p").copies == 1
    assert RepeatState.of(other, "p").copies == 0


def test_a_short_answer_may_be_drawn_again() -> None:
    state = RepeatState.of(pack({"p": np.full((50, 2), -1.0)}), "p")
    assert (state.checked, state.copies) == (0, 0.0)


def test_any_grouping_counts_the_same() -> None:
    columns = batch()
    rows = np.random.default_rng(0).integers(0, 20, size=60)
    whole = of(columns, *rows)
    parts = [of(columns, *part) for part in np.array_split(rows, 7)]
    both = sum(parts[1:], parts[0])
    assert np.array_equal(both.keys, whole.keys)
    assert np.array_equal(both.counts, whole.counts)
    assert both.copies == whole.copies == 60 - len(set(rows.tolist()))
    assert both.places == whole.places


def test_beyond_what_is_kept_the_smallest_hashes_stand_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of 2000 rows are copies; 200 of the 1000 are remembered, and their counts are whole."""
    monkeypatch.setattr(repeat_state, "KEPT", 200)
    columns = batch(1000, length=40)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(1000), 2))
    parts = [of(columns, *part) for part in np.array_split(rows, 9)]
    both = sum(parts[1:], parts[0])
    assert (both.checked, len(both.keys)) == (2000, 200)
    assert both.counts.tolist() == [2] * 200
    assert both.copies == 1000.0


def test_nothing_is_no_row() -> None:
    state = RepeatState.of(batch(0), "p")
    assert (state.checked, state.copies, state.places) == (0, 0.0, ())
