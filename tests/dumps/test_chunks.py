"""Where chunks end: by the lengths of the sequences alone, however the file was cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kullback.dumps.batch import Batch, Fault, Use
from kullback.dumps.chunks import CHUNK_TOKENS, Filling, chunked
from kullback.dumps.layout import Held
from kullback.dumps.ragged import Ragged

USES = [Use("log_probs.a", "a", Held(1, "number")), Use("step", "step", Held(0, "number"))]


def test_a_chunk_closes_before_the_row_that_would_overfill_it():
    filling = Filling()
    sizes = [CHUNK_TOKENS - 1, 1, 1, 3 * CHUNK_TOKENS, 5, 0]
    assert [filling.closes_before(n) for n in sizes] == [False, False, True, True, True, False]


def test_empty_rows_fill_a_chunk_too():
    filling = Filling()
    closed = [filling.closes_before(0) for _ in range(CHUNK_TOKENS + 1)]
    assert closed.index(True) == CHUNK_TOKENS


def batch(rows: Sequence[int], lengths: Sequence[int], damaged: Sequence[int] = ()) -> Batch:
    """Rows of which every token and the step say which row it is."""
    lists = Ragged.of([np.full(n, float(row)) for row, n in zip(rows, lengths, strict=True)])
    faults = [Fault(row, "bad") for row in damaged]
    return Batch(USES, [lists, list(rows)], np.array(rows, dtype=np.int64), faults)


def spread(pieces: int) -> list[Batch]:
    """Twelve rows, of which 3 and 7 are damaged, in so many batches."""
    third = CHUNK_TOKENS // 3
    lengths = dict.fromkeys(range(12), third) | {5: 2 * CHUNK_TOKENS, 8: 0, 11: 7}
    groups = [rows.tolist() for rows in np.array_split(np.arange(12), pieces)]
    return [
        batch(
            rows := [row for row in group if row not in (3, 7)],
            [lengths[row] for row in rows],
            [row for row in group if row in (3, 7)],
        )
        for group in groups
    ]


@pytest.mark.parametrize("pieces", [1, 2, 5, 12])
def test_chunks_do_not_depend_on_how_a_file_was_cut(pieces: int):
    chunks = list(chunked(spread(pieces)))
    assert [chunk.rows.tolist() for chunk in chunks] == [[0, 1, 2], [4], [5], [6, 8, 9, 10], [11]]
    assert [[fault.row for fault in chunk.faults] for chunk in chunks] == [[3], [], [], [7], []]
    for chunk in chunks:
        lists, steps = chunk.values
        assert steps == chunk.rows.tolist()
        np.testing.assert_array_equal(lists.values, np.repeat(chunk.rows, lists.lengths))


def test_damaged_rows_fill_a_chunk_too():
    chunks = list(chunked([batch([], [], range(CHUNK_TOKENS)), batch([CHUNK_TOKENS], [1])]))
    assert [len(chunk.faults) for chunk in chunks] == [CHUNK_TOKENS, 0]
