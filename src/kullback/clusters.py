"""A 64-bit key for each cluster, the same in every process and on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.arrays import to_numpy


def cluster_keys(ids: ArrayLike | Sequence[Any]) -> NDArray[np.uint64]:
    """A well-mixed 64-bit key for each id, the same in every process and on every machine.

    Integers are mixed as uint64, anything else is hashed as text. Python's ``hash`` is salted and
    would scatter the clusters of one dump over its readers.

    Raises:
        ValueError: There is not one id per sequence.

    Example:
        >>> one, other, again = cluster_keys(["a", "b", "a"])
        >>> bool(one == again), bool(one == other)
        (True, False)
    """
    array = to_numpy(ids, "clusters")
    if array.ndim != 1:
        raise ValueError(f"clusters are one id per sequence, not an array of shape {array.shape}")
    if array.dtype.kind in "iub":
        return mixed(array.astype(np.uint64))
    missing = [i for i, one in enumerate(array.tolist()) if one is None or one != one]
    if missing:
        raise ValueError(f"clusters: entry {missing[0]} is missing; give every sequence an id")
    digests = [
        hashlib.blake2b(str(one).encode(errors="surrogatepass"), digest_size=8).digest()
        for one in array.tolist()
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014): one-to-one, all bits avalanche."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def content_keys(arrays: Mapping[str, NDArray[Any]], sequences: int) -> NDArray[np.uint64]:
    """A key for each sequence that no sequence of another batch has: it starts from the content."""
    content = hashlib.blake2b(digest_size=8)
    for values in arrays.values():
        content.update(np.ascontiguousarray(values).data)
    batch = np.frombuffer(content.digest(), dtype="<u8").astype(np.uint64)
    return mixed(batch + np.arange(sequences, dtype=np.uint64))
