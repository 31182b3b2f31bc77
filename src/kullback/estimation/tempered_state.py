"""At which temperature of its own head were the tokens drawn? Log-likelihoods by cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, fits_bfloat16
from kullback.estimation.drawn import Drawn, drawn
from kullback.estimation.groups import Groups

EIGHTHS = (2, 4, 6, 7, 8, 9, 10, 12, 16, 24, 40, 64)
EXPONENTS = np.array(EIGHTHS) / 8  # β = 1/T, where the likelihood is summed
NODES = len(EXPONENTS)
PRODUCTS = {4: (2, 2), 6: (4, 2), 7: (6, 1), 8: (4, 4), 9: (8, 1), 10: (8, 2), 12: (6, 6),
            16: (8, 8), 24: (12, 12), 40: (24, 16), 64: (40, 24)}  # fmt: skip
LONGEST = 8  # entries of a head that are looked at: a cut beyond them changes nothing here
RAW = EIGHTHS.index(8)  # β = 1
TERMS = ("inside", "chosen", "depth", "first")
ROW = {name: i for i, name in enumerate(TERMS)}
NORMALIZERS = slice(len(TERMS), len(TERMS) + NODES)
FIRSTS = slice(NORMALIZERS.stop, NORMALIZERS.stop + NODES)


@dataclass(frozen=True, slots=True)
class TemperedState:
    """The likelihood of p^β within the head, by cluster. ``a + b`` is the state of both.

    Given that the token is in the head, which is known before it is drawn, a sampler at
    temperature 1/β draws entry x with probability p(x)^β / Σ p^β, whatever is outside.

    Args:
        groups: The sums by cluster. ``inside`` counts tokens in heads of two entries or more, and
            over these: ``chosen`` sums log p(x) − log p(the likeliest), ``depth`` −log p(x) −
            log p(the likeliest), ``first`` counts draws of the likeliest; then for each β of
            ``EXPONENTS`` log Σ (p / p of the likeliest)^β, and the likeliest's probability.
        bfloat16: Whether all log-probs of the heads are numbers that bfloat16 can hold.
    """

    groups: Groups
    bfloat16: bool

    @classmethod
    def of(cls, columns: Columns, role: str) -> TemperedState:
        """The sums of one batch."""
        sums, rounded = np.zeros((FIRSTS.stop, len(columns.lengths))), True
        sequence = columns.sequence_of_token
        for piece in drawn(columns, role):
            used, logs, place = _front(piece)
            if len(place):
                at = sequence[piece.start + np.flatnonzero(used)]
                begins = np.flatnonzero(np.diff(at, prepend=-1))
                sums[:, at[begins]] += np.add.reduceat(_rows(logs, place), begins, axis=1)
                rounded = rounded and fits_bfloat16(logs[logs > -np.inf])
        return cls(Groups.of(columns.clusters, sums), rounded)

    def __add__(self, other: TemperedState) -> TemperedState:
        return TemperedState(self.groups + other.groups, self.bfloat16 and other.bfloat16)

    def by_group(self, term: str) -> NDArray[np.float64]:
        """The sums of one term, [groups]."""
        return self.groups.sums[ROW[term]]


def _front(piece: Drawn) -> tuple[NDArray[np.bool_], NDArray[Any], NDArray[np.int64]]:
    """The tokens that fall into the front of their heads, those fronts, and the places there."""
    width = min(piece.logs.shape[1], LONGEST)
    used = piece.told & (piece.listed > 1) & (piece.place < width)
    if width < piece.logs.shape[1]:  # nobody knows which of the tied would have been listed
        used &= piece.logs[:, width - 1] > piece.logs[:, width]
    own = piece.logs[np.arange(len(used)), np.minimum(piece.place, width - 1)]
    used &= np.isfinite(own) & np.isfinite(piece.logs[:, 0])
    return used, piece.logs[used, :width], piece.place[used]


def _rows(logs: NDArray[Any], place: NDArray[np.int64]) -> NDArray[np.float64]:
    rows = np.ones((FIRSTS.stop, len(place)))
    own, top = logs[np.arange(len(place)), place].astype(np.float64), logs[:, 0].astype(np.float64)
    rows[ROW["chosen"]], rows[ROW["depth"]], rows[ROW["first"]] = own - top, -own - top, place == 0
    totals = _totals((logs.T - logs[:, 0]).astype(np.float32))
    rows[NORMALIZERS], rows[FIRSTS] = np.log(totals), 1.0 / totals
    return rows


def _totals(logs: NDArray[np.float32]) -> NDArray[np.float64]:
    """Σ p^β over each head, by β of ``EXPONENTS``, [β, tokens], from log p, [k, tokens].

    All powers are products of p^⅛, so that one exponential serves them; float32 is exact enough
    for the sums of their logs.
    """
    powers = {1: np.exp(logs / np.float32(8))}
    for eighths, (a, b) in {2: (1, 1), **PRODUCTS}.items():
        powers[eighths] = powers[a] * powers[b]
    return np.array([powers[eighths].sum(axis=0) for eighths in EIGHTHS], dtype=np.float64)
