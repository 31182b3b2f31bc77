from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.clusters import cluster_keys
from kullback.estimation.groups import KEPT, LAST_BITS, Groups
from kullback.estimation.interval import ratio_interval

PROPERTY = settings(derandomize=True, deadline=None)


def of(ids, *rows) -> Groups:
    return Groups.of(cluster_keys(np.asarray(ids)), np.array(rows, dtype=np.float64))


@PROPERTY
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), min_size=1, max_size=20))
def test_each_cluster_has_its_own_sums(sequences: list[tuple[int, int]]) -> None:
    ids, values = zip(*sequences, strict=True)
    groups = of(ids, values, np.ones(len(ids)))
    expected = {
        int(cluster_keys([one])[0]): (sum(v for i, v in sequences if i == one), ids.count(one))
        for one in set(ids)
    }
    assert groups.keys.tolist() == sorted(expected)
    assert [tuple(column) for column in groups.sums.T] == [expected[k] for k in sorted(expected)]
    assert groups.clusters == len(expected)


def test_no_sequences_have_no_groups() -> None:
    empty = of([], [])
    assert (empty.sums.shape, empty.clusters, empty.effective(0)) == ((1, 0), 0, 0.0)
    both = empty + of([3, 3], [1.0, 2.0])
    assert (both.sums.tolist(), both.clusters) == ([[3.0]], 1)


def test_1024_clusters_are_kept_and_the_next_one_folds_them() -> None:
    kept, one = of(range(KEPT), np.ones(KEPT)), of([KEPT], [1.0])
    assert (kept.folded, kept.clusters, kept.effective(0)) == (False, KEPT, KEPT)
    assert not (kept + of([5], [1.0])).folded
    for folded in (kept + one, one + kept, of(range(KEPT + 1), np.ones(KEPT + 1))):
        assert folded.folded
        assert folded.keys.tolist() == sorted(set((cluster_keys(range(KEPT + 1)) & 0xFF).tolist()))
        assert folded.sums.sum() == KEPT + 1
        assert folded.smallest.tolist() == sorted(cluster_keys(range(KEPT + 1)).tolist())[:KEPT]


def test_folded_groups_are_the_same_however_they_were_added() -> None:
    ids, values = np.arange(3000) % 2500, np.arange(3000) % 17
    at_once = of(ids, values)
    parts = [of(ids[a : a + 600], values[a : a + 600]) for a in range(0, 3000, 600)]
    forward = parts[0] + parts[1] + (parts[2] + (parts[3] + parts[4]))
    for groups in (forward, parts[4] + parts[2] + (parts[3] + (parts[1] + parts[0]))):
        assert groups.keys.tolist() == at_once.keys.tolist()
        assert groups.sums.tolist() == at_once.sums.tolist()  # of integers, so exactly
        assert groups.smallest.tolist() == at_once.smallest.tolist()
        assert groups.clusters == at_once.clusters


def test_folding_keeps_the_clustered_error_and_the_number_of_clusters() -> None:
    rng = np.random.default_rng(0)
    ratios, counts, kish = [], [], []
    for seed in range(20):
        sizes = rng.geometric(0.1, size=3000).astype(np.float64)
        values = sizes * rng.normal(0.02, 0.05, size=3000) + rng.normal(0, 0.3, size=3000)
        groups = of(np.arange(3000) + 10**6 * seed, values, sizes)
        truth = ratio_interval(values, sizes, effective=3000, confidence=0.95)
        folded = ratio_interval(*groups.sums, effective=3000, confidence=0.95)
        assert folded.mean == pytest.approx(truth.mean, rel=1e-9)
        ratios.append(folded.standard_error / truth.standard_error)
        counts.append(groups.clusters / 3000)
        kish.append(groups.effective(1) / (sizes.sum() ** 2 / (sizes**2).sum()))
    # One ratio of errors from 256 groups has a standard deviation of 1/√510 = 0.044.
    assert np.abs(np.log(ratios)).max() < np.log(1.2)
    assert np.mean(ratios) == pytest.approx(1, abs=0.04)
    assert np.abs(np.array(counts) - 1).max() < 0.1
    assert np.mean(counts) == pytest.approx(1, abs=0.03)
    assert np.mean(kish) == pytest.approx(1, abs=0.05)
    assert np.abs(np.array(kish) - 1).max() < 0.3


def test_side_by_side_the_sums_stand_under_the_keys_of_both() -> None:
    a, b = of([1, 2, 2], [1.0, 2.0, 3.0]), of([2, 3], [10.0, 20.0])
    keys, ours, theirs = a.beside(b)
    one, two, three = (int(cluster_keys([i])[0]) for i in (1, 2, 3))
    told = {int(k): (x, y) for k, x, y in zip(keys, ours[0], theirs[0], strict=True)}
    assert told == {one: (1.0, 0.0), two: (5.0, 10.0), three: (0.0, 20.0)}
    folded = of(range(2000), np.ones(2000))
    keys, ours, theirs = folded.beside(a)
    assert keys.tolist() == folded.keys.tolist()
    assert (ours.sum(), theirs.sum(), np.count_nonzero(theirs)) == (2000, 6.0, 2)


def test_shared_clusters_are_counted_and_of_many_estimated() -> None:
    assert of([1, 2, 3], np.ones(3)).shared(of([3, 4, 3], np.ones(3))) == 1
    many = of(range(5000), np.ones(5000))
    assert many.shared(many) == many.clusters
    assert many.shared(of(range(5000, 9000), np.ones(4000))) == 0
    found = [
        of(range(s, s + 5000), np.ones(5000)).shared(of(range(s + 2000, s + 7000), np.ones(5000)))
        for s in range(0, 200_000, 10_000)
    ]
    # Of 7000 clusters 3/7 are shared: the share is known to 0.016/0.43, the number to 3 per cent.
    assert np.mean(found) == pytest.approx(3000, rel=0.05)
    assert np.std(found) < 0.1 * 3000


def test_the_effective_number_is_kishs_and_never_above_the_number() -> None:
    assert of([1, 2, 3], [6.0, 1.0, 1.0]).effective(0) == pytest.approx(64 / 38)
    for start in range(0, 80_000, 8_000):
        many = of(np.arange(start, start + 5000), np.ones(5000))
        assert 0.7 * many.clusters < many.effective(0) <= many.clusters


def test_one_cluster_that_owns_the_tokens_is_seen_after_folding() -> None:
    sizes = np.ones(3000)
    sizes[7] = 3000.0
    assert of(range(3000), sizes).effective(0) == pytest.approx(6000**2 / (3000**2 + 3000), rel=0.2)


@pytest.mark.parametrize("clusters", [5, KEPT + 40])
def test_sums_stand_over_the_groups_of_another_that_has_more_clusters(clusters):
    keys = cluster_keys(np.arange(clusters))
    whole = Groups.of(keys, np.ones((1, clusters)))
    part = Groups.of(keys[:3], np.eye(3)[:2])
    over = part.over(whole)
    assert over.shape == (2, len(whole.keys))
    for term in range(2):
        key = keys[term] & LAST_BITS if whole.folded else keys[term]
        assert over[term].sum() == over[term, np.searchsorted(whole.keys, key)] == 1.0
