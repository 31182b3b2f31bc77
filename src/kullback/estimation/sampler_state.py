"""Can this role have sampled these tokens? Sums whose mean is 0 if it did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, is_sentinel
from kullback.estimation.groups import Groups
from kullback.levels import segment_sums

ENTROPY_FLOOR = 0.3  # nats; below, one unlikely token outweighs all others and honest samplers fail

TERMS = ("prefixes", "surprise", "surprise_squared", "heads", "hits", "hits_squared")
ROW = {name: i for i, name in enumerate(TERMS)}


@dataclass(frozen=True, slots=True)
class SamplerState:
    """Two martingales of a role that sampled, by cluster. ``a + b`` is the state of both.

    ``surprise`` sums −log p(x) − H over the prefixes with H ≥ 0.3, and ``hits`` sums "the token is
    in the logged head" less the mass of that head. Both H and the head are known before the token
    is drawn, so both sums have mean 0 under the role, whatever the other policies are, and their
    terms are uncorrelated: the sum of their squares is a variance of the sum.

    Args:
        groups: The sums by cluster, the rows named by ``TERMS``.
    """

    groups: Groups

    @classmethod
    def of(cls, columns: Columns, role: str) -> SamplerState:
        """The sums of one batch."""
        values = columns.log_probs[role]
        inside = columns.mask & np.isfinite(values) & ~is_sentinel(values)
        rows = np.zeros((len(TERMS), len(columns)))
        if role in columns.entropy:
            entropy = columns.entropy[role]
            told = inside & (entropy >= ENTROPY_FLOOR)
            rows[ROW["prefixes"]] = told
            rows[ROW["surprise"]] = np.where(told, -values - np.where(told, entropy, 0.0), 0.0)
        if role in columns.top_k and columns.tokens is not None:
            _add_hits(rows, columns, role)
        for name in ("surprise", "hits"):
            rows[ROW[f"{name}_squared"]] = rows[ROW[name]] ** 2
        return cls(Groups.of(columns.clusters, segment_sums(rows, columns.lengths)))

    def __add__(self, other: SamplerState) -> SamplerState:
        return SamplerState(self.groups + other.groups)

    def by_group(self, term: str) -> NDArray[np.float64]:
        """The sums of one term, [groups]."""
        return self.groups.sums[ROW[term]]

    def effective_clusters(self, sizes: str) -> float:
        """Kish's effective number of clusters, each as large as its ``prefixes`` or ``heads``."""
        return self.groups.effective(ROW[sizes])


def _add_hits(rows: NDArray[np.float64], columns: Columns, role: str) -> None:
    head = columns.top_k[role]
    there = head.ids >= 0
    assert columns.tokens is not None
    hit = ((head.ids == columns.tokens[:, None]) & there).any(axis=1)
    mass = np.exp(head.log_probs, where=there, out=np.zeros(head.ids.shape)).sum(axis=1)
    # A prefix counts whatever was drawn there, even a token without a log-prob: all others would
    # be a selection by the outcome.
    told = columns.mask & there.any(axis=1) & np.isfinite(mass)
    rows[ROW["heads"]] = told
    rows[ROW["hits"]] = np.where(told, hit - mass, 0.0)
