"""Sums by cluster that merge: what the clustered error of every estimate is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KEPT = 1024  # clusters that keep a group of their own, and smallest keys kept for counting
LAST_BITS = np.uint64(0xFF)  # beyond, clusters share 256 groups: the last eight bits of their key


@dataclass(frozen=True, slots=True)
class Groups:
    """Sums of each term over each group of clusters.

    Up to 1024 clusters are a group each. More share 256 groups: with thousands of clusters a group
    is an unbiased draw of them, and the clustered error loses nothing; with sixty-four it would be
    off by up to a quarter, which is why small numbers are kept apart.

    Args:
        keys: The key of each group, ascending, [groups].
        sums: Sum of each term over each group, [terms, groups].
        smallest: The smallest distinct cluster keys, at most 1024, ascending.
        folded: Whether clusters share groups.
    """

    keys: NDArray[np.uint64]
    sums: NDArray[np.float64]
    smallest: NDArray[np.uint64]
    folded: bool

    @classmethod
    def of(cls, keys: NDArray[np.uint64], sums: NDArray[np.float64]) -> Groups:
        """Group sequences by the key of their cluster; sums is [terms, sequences]."""
        distinct, group = np.unique(keys, return_inverse=True)
        grouped = _added_up(sums, group, len(distinct))
        return cls(distinct, grouped, distinct[:KEPT], folded=False)._fold_if_many()

    @np.errstate(over="ignore", invalid="ignore")  # what overflows becomes a reason
    def __add__(self, other: Groups) -> Groups:
        keys, ours, theirs = self.beside(other)
        smallest = np.union1d(self.smallest, other.smallest)[:KEPT]
        folded = self.folded or other.folded
        return Groups(keys, ours + theirs, smallest, folded)._fold_if_many()

    def beside(
        self, other: Groups
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
        """The groups of either, and the sums of each over them: 0 where a side has none."""
        a, b = (self._fold(), other._fold()) if self.folded or other.folded else (self, other)
        keys = np.union1d(a.keys, b.keys)
        ours, theirs = np.zeros((2, len(a.sums), len(keys)))
        ours[:, np.searchsorted(keys, a.keys)] = a.sums
        theirs[:, np.searchsorted(keys, b.keys)] = b.sums
        return keys, ours, theirs

    def over(self, other: Groups) -> NDArray[np.float64]:
        """The sums over the groups of another that has all clusters of this one, 0 elsewhere."""
        mine = self._fold() if other.folded else self
        sums = np.zeros((len(mine.sums), len(other.keys)))
        sums[:, np.searchsorted(other.keys, mine.keys)] = mine.sums
        return sums

    def shared(self, other: Groups) -> int:
        """How many clusters both have; from the smallest keys of both where they share groups.

        The smallest keys are a random draw of all clusters of either side, so the share of them
        that both have is that of all; with 1024 of them it is off by 1.6 points at most (one
        standard deviation).
        """
        common = np.intersect1d(self.smallest, other.smallest)
        if not (self.folded or other.folded):
            return len(common)
        smallest = np.union1d(self.smallest, other.smallest)[:KEPT]
        return round(np.isin(smallest, common).mean() * _counted(smallest))

    def _fold_if_many(self) -> Groups:
        return self._fold() if len(self.keys) > KEPT else self

    def _fold(self) -> Groups:
        if self.folded:
            return self
        keys, group = np.unique(self.keys & LAST_BITS, return_inverse=True)
        return Groups(keys, _added_up(self.sums, group, len(keys)), self.smallest, folded=True)

    @property
    def clusters(self) -> int:
        """How many clusters there are; from their smallest keys where they share groups."""
        return _counted(self.smallest) if self.folded else len(self.keys)

    def effective(self, term: int) -> float:
        """Kish's effective number of clusters, (Σ d)² / Σ d², with the sizes d of one term.

        Where c clusters share g groups, E Σ D² = Σ d² + ((Σ d)² − Σ d²)/g; solved for Σ d².
        """
        sizes = self.sums[term]
        total, squares = float(sizes.sum()), float((sizes**2).sum())
        if self.folded:
            groups = int(LAST_BITS) + 1
            squares = (squares - total**2 / groups) / (1 - 1 / groups)
            squares = max(squares, total**2 / self.clusters)  # never more than there are
        return total**2 / squares if squares > 0 else 0.0


def _counted(smallest: NDArray[np.uint64]) -> int:
    """How many keys there are of which these are the 1024 smallest.

    Keys are uniform on 64 bits, so the k-th smallest of n stands near k/n of the range
    (Bar-Yossef et al. 2002); with k = 1024 the relative error is about 3 %.
    """
    return round((KEPT - 1) / (float(smallest[-1]) / 2.0**64))


def _added_up(
    sums: NDArray[np.float64], group: NDArray[np.int64], groups: int
) -> NDArray[np.float64]:
    """The columns of each group added, in their order: [terms, columns] to [terms, groups]."""
    grouped = np.zeros((len(sums), groups))
    for term, values in enumerate(sums):
        grouped[term] = np.bincount(group, weights=values, minlength=groups)
    return grouped
