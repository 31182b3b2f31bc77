"""Keys of clusters: the same everywhere, and mixed."""

from __future__ import annotations

import numpy as np

from kullback.clusters import cluster_keys


def test_cluster_keys_are_the_same_on_every_machine() -> None:
    # 0xe220… is the first output of SplitMix64 with seed 0 as published; the others are from an
    # implementation in Python's integers and from `b2sum -l 64`, read as little-endian.
    assert [hex(key) for key in cluster_keys([0, 1, -1])] == [
        "0xe220a8397b1dcdaf",
        "0x910a2dec89025cc1",
        "0xe4d971771b652c20",
    ]
    assert [hex(key) for key in cluster_keys(["prompt-7", ""])] == [
        "0x9c82a7e7a22ad7ad",
        "0xb4b2797457a0a6e4",
    ]


def test_cluster_keys_depend_on_the_id_and_not_on_how_it_is_held() -> None:
    for held in ([0, 1, 7], np.array([0, 1, 7], np.int8), np.array([0, 1, 7], np.uint64)):
        assert cluster_keys(held).tolist() == cluster_keys([0, 1, 7]).tolist()
    texts = np.array(["a", "bc"], dtype=object)
    assert cluster_keys(texts).tolist() == cluster_keys(["a", "bc"]).tolist()
    assert cluster_keys([7]).tolist() != cluster_keys(["7"]).tolist()
    assert cluster_keys([]).shape == (0,)


def test_the_bits_of_cluster_keys_are_mixed() -> None:
    keys = cluster_keys(np.arange(1 << 14))
    assert len(np.unique(keys)) == 1 << 14
    for bit in range(64):
        ones = int(((keys >> np.uint64(bit)) & np.uint64(1)).sum())
        assert abs(ones - (1 << 13)) < 5 * 64  # the standard deviation is 64


def test_text_of_any_kind_can_be_a_cluster() -> None:
    broken = "\ud83d"  # half of a surrogate pair, which JSON can hold
    assert len(set(cluster_keys([broken, "?"]).tolist())) == 2
