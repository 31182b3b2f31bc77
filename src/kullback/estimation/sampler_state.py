"""Can this role have sampled these tokens? Sums whose mean is 0 if it did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, fits_bfloat16, is_number
from kullback.estimation.groups import Groups
from kullback.levels import segment_sums

ENTROPY_FLOOR = 0.3  # nats; below, one unlikely token outweighs all others and honest samplers fail

BLOCK = 1 << 12  # tokens at a time, so that their heads stay in the cache

TERMS = (
    "prefixes",
    "entropy",
    "surprise",
    "surprise_variance",
    "unlogged",
    "heads",
    "hits",
    "hits_variance",
)
ROW = {name: i for i, name in enumerate(TERMS)}


@dataclass(frozen=True, slots=True)
class SamplerState:
    """Two martingales of a role that sampled, by cluster. ``a + b`` is the state of both.

    ``surprise`` sums −log p(x) − H over the prefixes with H ≥ 0.3, and ``hits`` sums "the token is
    in the logged head" less the mass m of that head. Both H and the head are known before the
    token is drawn, so both sums have mean 0 under the role, whatever the other policies are, and
    uncorrelated terms. So their variances are sums too: of squares for the surprise, of m (1 − m)
    for the hits, where squares would see nothing of the misses that did not happen.

    Args:
        groups: The sums by cluster, the rows named by ``TERMS``; ``unlogged`` counts prefixes
            with H ≥ 0.3 whose token has no log-prob.
        bfloat16: Whether all entropies are numbers that bfloat16 can hold.
    """

    groups: Groups
    bfloat16: bool

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # what overflows is no test
    def of(cls, columns: Columns, role: str) -> SamplerState:
        """The sums of one batch."""
        rows, rounded = np.zeros((len(TERMS), len(columns))), True
        if role in columns.entropy:
            rounded = _add_surprise(rows, columns, role)
        if role in columns.top_k and columns.tokens is not None:
            _add_hits(rows, columns, role)
        return cls(Groups.of(columns.clusters, segment_sums(rows, columns.lengths)), rounded)

    def __add__(self, other: SamplerState) -> SamplerState:
        return SamplerState(self.groups + other.groups, self.bfloat16 and other.bfloat16)

    def by_group(self, term: str) -> NDArray[np.float64]:
        """The sums of one term, [groups]."""
        return self.groups.sums[ROW[term]]

    def effective_clusters(self, sizes: str) -> float:
        """Kish's effective number of clusters, each as large as its ``prefixes`` or ``heads``."""
        return self.groups.effective(ROW[sizes])


def _add_surprise(rows: NDArray[np.float64], columns: Columns, role: str) -> bool:
    values = columns.log_probs[role].astype(np.float64)
    entropy = columns.entropy[role].astype(np.float64)
    chosen = columns.mask & np.isfinite(entropy) & (entropy >= ENTROPY_FLOOR)
    logged = is_number(values)
    told = chosen & logged
    surprise = np.where(told, -values, 0.0) - np.where(told, entropy, 0.0)
    rows[ROW["prefixes"]], rows[ROW["unlogged"]] = told, chosen & ~logged
    rows[ROW["entropy"]] = np.where(told, entropy, 0.0)
    rows[ROW["surprise"]], rows[ROW["surprise_variance"]] = surprise, surprise**2
    return fits_bfloat16(columns.entropy[role][chosen])


def _add_hits(rows: NDArray[np.float64], columns: Columns, role: str) -> None:
    head = columns.top_k[role]
    assert columns.tokens is not None
    for start in range(0, len(columns), BLOCK):
        here = slice(start, start + BLOCK)
        ids, logs, there = head.ids[here], head.log_probs[here], head.ids[here] >= 0
        hit = ((ids == columns.tokens[here, None]) & there).any(axis=1)
        mass = np.exp(np.where(there, logs, -np.inf), dtype=np.float64).sum(axis=1)
        # A prefix counts whatever was drawn there, even a token without a log-prob: all others
        # would be a selection by the outcome.
        told = columns.mask[here] & there.any(axis=1) & np.isfinite(mass)
        rows[ROW["heads"], here] = told
        rows[ROW["hits"], here] = np.where(told, hit - mass, 0.0)
        variance = np.clip(mass * (1 - mass), 0.0, None)
        rows[ROW["hits_variance"], here] = np.where(told, variance, 0.0)
