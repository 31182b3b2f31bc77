"""Where chunks end, and what is left when rows are taken out."""

from __future__ import annotations

import numpy as np

from kullback.dumps.batch import CHUNK_TOKENS, Batch, Filling
from kullback.dumps.ragged import Ragged


def test_a_chunk_closes_before_the_row_that_would_overfill_it():
    filling = Filling()
    sizes = [CHUNK_TOKENS - 1, 1, 1, 3 * CHUNK_TOKENS, 5, 0]
    assert [filling.closes_before(n) for n in sizes] == [False, False, True, True, True, False]


def test_empty_rows_fill_a_chunk_too():
    filling = Filling()
    closed = [filling.closes_before(0) for _ in range(CHUNK_TOKENS + 1)]
    assert closed.index(True) == CHUNK_TOKENS


def test_rows_are_left_out_by_index_and_named_by_row():
    lists = Ragged.of([np.array([1.0]), np.array([2.0, 3.0])])
    batch = Batch((), [lists, ["a", "b"]], np.array([10, 11]), {}).without({0: "bad"})
    assert batch.faults == {10: "bad"}
    assert batch.rows.tolist() == [11]
    assert batch.values[0].values.tolist() == [2, 3]
    assert batch.values[1] == ["b"]
