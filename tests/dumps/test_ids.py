"""Keys of ids, and the memory of which were there."""

from __future__ import annotations

import numpy as np
import pytest

from kullback.clusters import cluster_keys
from kullback.dumps.ids import Seen, mixed_keys


def test_numbers_and_texts_have_keys_of_their_own_type():
    keys = mixed_keys([3, "3", 3.0, -1, "x"])
    assert keys[0] == keys[2] == cluster_keys([3])[0]
    assert keys[1] == cluster_keys(["3"])[0]
    assert len(set(keys.tolist())) == 4


@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_key_is_known_again_wherever_it_comes_back(size: int):
    keys = mixed_keys(list(range(500)))
    seen = Seen()
    assert all(seen.add(keys[i : i + size]) is None for i in range(0, 500, size))
    for old in (0, 250, 499):
        assert seen.add(mixed_keys([1000 + old, old, 2000 + old])) == 1


def test_a_key_twice_at_once_is_known_too():
    assert Seen().add(np.array([5, 7, 7, 5], dtype=np.uint64)) == 2
    assert Seen().add(np.zeros(0, dtype=np.uint64)) is None
