"""Ids of prompts and sequences: a key for each, and which were there before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kullback.clusters import cluster_keys


def mixed_keys(ids: Sequence[int | float | str]) -> NDArray[np.uint64]:
    """Keys of ids that may be numbers in one row and text in the next.

    Each by its own type: the key of a prompt must not depend on its neighbors in a chunk.
    """
    numbers = np.array([not isinstance(one, str) for one in ids], dtype=np.bool_)
    keys = np.zeros(len(ids), dtype=np.uint64)
    if numbers.any():
        whole = [int(one) % 2**64 for one in ids if not isinstance(one, str)]
        keys[numbers] = cluster_keys(np.array(whole, dtype=np.uint64))
    if not numbers.all():
        keys[~numbers] = cluster_keys([one for one in ids if isinstance(one, str)])
    return keys


class Seen:
    """The keys so far, eight bytes each; a dump may have millions of sequences."""

    def __init__(self) -> None:
        self._sorted: list[NDArray[np.uint64]] = []

    def add(self, keys: NDArray[np.uint64]) -> int | None:
        """Add keys; the index of the first one that was there already, if one was."""
        order = np.argsort(keys, kind="stable")
        new = keys[order]
        again = np.zeros(len(keys), dtype=np.bool_)
        again[order[1:]] = new[1:] == new[:-1]
        for old in self._sorted:
            again |= old[np.searchsorted(old, keys).clip(max=len(old) - 1)] == keys
        if len(new):
            self._sorted.append(new)
        # Merged with the one before when that is not much larger: few arrays, few merges.
        while len(self._sorted) > 1 and len(self._sorted[-2]) < 2 * len(self._sorted[-1]):
            last = self._sorted.pop()
            self._sorted[-1] = np.sort(np.concatenate([self._sorted[-1], last]))
        return int(again.argmax()) if again.any() else None
