"""Does a sampler never draw beyond a cut of its own head? Top-k, top-p and min-p, counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, TopK, fits_bfloat16
from kullback.estimation.drawn import EVERY, drawn
from kullback.heads import shared

RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64, 80, 100, 128, 200, 256, 512,
         1000, 2048, 4096)  # fmt: skip
MASSES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995)
SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)  # of the likeliest
RULES = ("top-k", "top-p", "min-p")
CUTS = tuple(zip(RULES, (RANKS, MASSES, SHARES), strict=True))
PLACES = tuple((rule, cut) for rule, cuts in CUTS for cut in cuts)
TERMS = ("told", "expected", "log_kept", "size", "firsts", "expected_firsts")
ROW = {name: i for i, name in enumerate(TERMS)}
BOTH = ("looked", "listed", "kept", "kl")
TINY = 1e-300  # the smallest mass kept: of what is no distribution


@dataclass(frozen=True, slots=True)
class CutState:
    """What a sampler would keep of its heads, were it cut where it never went. ``a + b`` adds.

    The kept set of each cut, and its mass m, are known before the token is drawn, where the head
    reaches as far as the cut. An honest sampler stays inside with probability m, and so never
    leaves with ∏ m at most.

    Args:
        sums: For each cut of ``PLACES`` (columns) beyond which nothing was drawn, the rows of
            ``TERMS``: prefixes whose head reaches to it; over them Σ (1 − m), −Σ log m, and
            Σ p |log p|, by which rounding moves m; draws of the likeliest token, and Σ p/m of
            it. 0 where something was drawn beyond.
        prefixes: Prefixes with a head.
        longest: Entries of the longest head.
        others: By other role, the rows of ``BOTH`` over every 16th prefix of a sequence: how many
            of them reach to the cut, and at how many the other role lists all that it keeps; over
            these, the sums of the mass kept of the other role and of KL(what is kept of the
            sampler‖the other role).
        deepest: By rule, how far the draws went: the tokens that are likelier, their mass, and
            −log p less that of the likeliest; of a token outside its head, as far as that goes.
        bfloat16: Whether all log-probs of the heads are numbers that bfloat16 can hold.
    """

    sums: NDArray[np.float64]
    prefixes: int
    longest: int
    others: dict[str, NDArray[np.float64]]
    deepest: tuple[float, ...]
    bfloat16: bool

    @classmethod
    def of(cls, columns: Columns, role: str) -> CutState:
        """The counts of one batch."""
        sums, deepest = np.zeros((len(TERMS), len(PLACES))), np.zeros(len(RULES))
        heads = {name: head for name, head in columns.top_k.items() if name != role}
        others = {name: np.zeros((len(BOTH), len(PLACES))) for name in heads}
        position = columns.position_of_token
        prefixes, longest, rounded = 0, 0, True
        for piece in drawn(columns, role):
            logs, listed, place = (one[piece.told] for one in piece[3:])
            if not len(logs):
                continue
            prefixes, longest = prefixes + len(logs), max(longest, int(listed.max()))
            rounded = rounded and fits_bfloat16(logs[logs > -np.inf])
            mass = np.cumsum(np.exp(logs), axis=1, dtype=np.float64)
            deepest = np.maximum(deepest, _deepest(logs, mass, listed, place))
            still = np.flatnonzero(_open(deepest) & _reached(logs.shape[1]))
            if not still.size:
                continue
            at = piece.start + np.flatnonzero(piece.told)
            few = position[at] % EVERY == 0
            ids = piece.ids[piece.told][few]
            beside = {
                name: shared(TopK(ids, logs[few]), TopK(head.ids[at[few]], head.log_probs[at[few]]))
                for name, head in heads.items()
            }
            for column in still:
                kept, told = _kept(*PLACES[column], logs, mass, listed)
                sums[:, column] += _sums(kept, told, logs, mass, place)
                for name, theirs in beside.items():
                    both = _both(kept[few], told[few], logs[few], theirs.log_probs)
                    others[name][:, column] += both
        return cls._closed(sums, prefixes, longest, others, deepest, rounded)

    @classmethod
    def _closed(
        cls,
        sums: NDArray[np.float64],
        prefixes: int,
        longest: int,
        others: dict[str, NDArray[np.float64]],
        deepest: NDArray[np.float64],
        rounded: bool,
    ) -> CutState:
        """Without the sums of cuts beyond which something was drawn."""
        still = _open(deepest)
        others = {name: np.where(still, rows, 0.0) for name, rows in others.items()}
        far = tuple(deepest.tolist())
        return cls(np.where(still, sums, 0.0), prefixes, longest, others, far, rounded)

    def __add__(self, other: CutState) -> CutState:
        nothing = np.zeros((len(BOTH), len(PLACES)))
        names = dict.fromkeys([*self.others, *other.others])
        return CutState._closed(
            self.sums + other.sums,
            self.prefixes + other.prefixes,
            max(self.longest, other.longest),
            {n: self.others.get(n, nothing) + other.others.get(n, nothing) for n in names},
            np.maximum(self.deepest, other.deepest),
            self.bfloat16 and other.bfloat16,
        )


def _open(deepest: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The cuts of ``PLACES`` beyond which nothing was drawn."""
    rank, before, depth = deepest
    shares = depth <= -np.log(np.array(SHARES))
    return np.concatenate([rank < np.array(RANKS), before < np.array(MASSES), shares])


def _reached(width: int) -> NDArray[np.bool_]:
    """The cuts of ``PLACES`` to which heads of this width can reach."""
    return np.array([rule != "top-k" or cut <= width for rule, cut in PLACES])


def _deepest(
    logs: NDArray[Any],
    mass: NDArray[np.float64],
    listed: NDArray[np.int64],
    place: NDArray[np.int64],
) -> NDArray[np.float64]:
    """How far the draws of one piece went, by rule."""
    row, width = np.arange(len(logs)), logs.shape[1]
    outside = place >= width
    own = logs[row, np.where(outside, listed - 1, place)]
    likelier = np.where(outside, listed, (logs > own[:, None]).sum(axis=1))
    before = np.where(likelier > 0, mass[row, np.maximum(likelier, 1) - 1], 0.0)
    return np.array([likelier.max(), before.max(), np.max(logs[:, 0] - own)], dtype=np.float64)


def _kept(
    rule: str,
    cut: float,
    logs: NDArray[Any],
    mass: NDArray[np.float64],
    listed: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """How many entries a cut keeps at each prefix, and where the head reaches as far.

    Where a tie stands across the edge, nobody knows which of the tied it keeps.
    """
    row, width = np.arange(len(logs)), logs.shape[1]
    if rule == "top-k":
        kept, told = np.full(len(logs), int(cut)), listed >= cut
    elif rule == "top-p":
        kept, told = 1 + (mass < cut).sum(axis=1), mass[:, -1] >= cut
    else:
        edge = logs[:, 0] + np.log(cut)
        kept, told = (logs >= edge[:, None]).sum(axis=1), logs[row, listed - 1] < edge
    last, after = (np.clip(kept + i, 0, width - 1) for i in (-1, 0))
    return kept, told & ((kept >= listed) | (logs[row, last] > logs[row, after]))


def _sums(
    kept: NDArray[np.int64],
    told: NDArray[np.bool_],
    logs: NDArray[Any],
    mass: NDArray[np.float64],
    place: NDArray[np.int64],
) -> tuple[float, ...]:
    """The sums of one cut over one piece, by ``TERMS``."""
    if not told.any():
        return (0.0,) * len(TERMS)
    m = np.clip(mass[np.flatnonzero(told), kept[told] - 1], TINY, 1.0)
    p = np.exp(logs[told])
    size = float(-(p * np.where(p > 0, logs[told], 0.0)).sum(dtype=np.float64))
    firsts, likely = int((place[told] == 0).sum()), float((p[:, 0] / m).sum(dtype=np.float64))
    return len(m), float((1 - m).sum()), float(-np.log(m).sum()), size, firsts, likely


def _both(
    kept: NDArray[np.int64],
    told: NDArray[np.bool_],
    log_p: NDArray[Any],
    log_q: NDArray[Any],
) -> tuple[float, ...]:
    """The sums of one cut under both roles, by ``BOTH``; q's log-probs stand in p's places."""
    inside = np.arange(log_p.shape[1]) < kept[:, None]
    looked, told = int(told.sum()), told & (np.isfinite(log_q) | ~inside).all(axis=1)
    inside = inside[told]
    log_p, log_q = (np.where(inside, one[told], 0.0).astype(np.float64) for one in (log_p, log_q))
    p, q = (np.where(inside, np.exp(one), 0.0) for one in (log_p, log_q))
    mass = p.sum(axis=1)
    kl = (p * (log_p - log_q)).sum(axis=1) / mass - np.log(mass)
    return looked, len(mass), float(q.sum()), float(kl.sum())
