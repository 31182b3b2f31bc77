"""Batches of sequences, as a file gave them, to chunks; where one ends is decided here alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.batch import Batch, Fault

CHUNK_TOKENS = 2**17


class Filling:
    """Where one chunk ends and the next begins; the same for every format and reader.

    A chunk closes before the row that would carry it over 2^17 tokens, so it holds at most that
    many, or one longer row. An empty row counts as one token, so that memory stays bounded.
    """

    def __init__(self) -> None:
        self.tokens = 0

    def closes_before(self, tokens: int) -> bool:
        """Count a row in; true if the chunk closes before it."""
        size = max(tokens, 1)
        full = self.tokens > 0 and self.tokens + size > CHUNK_TOKENS
        self.tokens = size if full else self.tokens + size
        return full


def chunked(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same rows in the same order, a chunk at a time."""
    filling = Filling()
    pieces: list[Batch] = []
    for batch in batches:
        sizes, place, faults = _in_order(batch)
        last = 0
        for entry, tokens in enumerate(sizes.tolist()):
            if filling.closes_before(tokens):
                yield Batch.end_to_end([*pieces, _between(batch, place, faults, last, entry)])
                pieces, last = [], entry
        pieces.append(_between(batch, place, faults, last, len(sizes)))
    if pieces:
        yield Batch.end_to_end(pieces)


def _in_order(batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Fault]]:
    """The rows as they stand in the file, usable or not.

    Returns:
        The size of each; how many usable ones stand before it (and before the end); the others.
    """
    faults = sorted(batch.faults, key=lambda fault: fault.row)
    measure = next(i for i, use in enumerate(batch.uses) if use.family == "log_probs")
    sizes = np.concatenate([batch.values[measure].lengths, np.zeros(len(faults), np.int64)])
    numbers: Any = [fault.row for fault in faults]
    order = np.argsort(np.concatenate([batch.rows, np.array(numbers, np.int64)]), kind="stable")
    place = np.concatenate([[0], np.cumsum(order < len(batch.rows))])
    return sizes[order], place, faults


def _between(
    batch: Batch, place: NDArray[np.int64], faults: list[Fault], first: int, last: int
) -> Batch:
    start, stop = int(place[first]), int(place[last])
    return batch.part(start, stop, faults[first - start : last - stop])
