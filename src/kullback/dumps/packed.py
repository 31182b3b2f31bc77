"""Packed rows: each holds the tokens of several sequences end to end, and where to cut them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.batch import Batch, Use
from kullback.dumps.layout import CUTS, PER_TOKEN, is_shareable
from kullback.dumps.ragged import Ragged, starts

Faults = dict[int, str]


def sequences(batches: Iterable[Batch], count: int = 0) -> Iterator[Batch]:
    """Batches of packed rows to batches of their sequences, the first of which has this number."""
    for batch in batches:
        lengths, faults = _lengths(batch)
        lengths = [one for row, one in enumerate(lengths) if row not in faults]
        cut = _cut(batch.without(faults), lengths, count)
        count += len(cut.rows)
        yield cut


def _lengths(batch: Batch) -> tuple[list[NDArray[np.int64]], Faults]:
    """The tokens of each sequence of each row; a fault where what the row holds does not fit."""
    lengths: list[NDArray[np.int64]] = []
    faults: Faults = {}
    [(use, cuts)] = [
        (use, value)
        for use, value in zip(batch.uses, batch.values, strict=True)
        if use.family in CUTS
    ]
    ends = starts(cuts.lengths)
    for row, known in enumerate(cuts.known.tolist()):
        found = _read(use, cuts.values[ends[row] : ends[row + 1]]) if known else "is null"
        if isinstance(found, str):
            faults[row] = f"{use.column} {found}"
            found = np.zeros(0, np.int64)
        lengths.append(found)
    for use, value in zip(batch.uses, batch.values, strict=True):
        if use.family in CUTS:
            continue
        wrong = _wrong_tokens if use.family in PER_TOKEN and use.depth else _wrong_sequences
        faults = wrong(use, value, lengths) | faults
    return lengths, faults


def _read(use: Use, cuts: NDArray[Any]) -> NDArray[np.int64] | str:
    """Lengths, or a sentence on what is none."""
    if not (np.isfinite(cuts) & (cuts == np.floor(cuts)) & (np.abs(cuts) < 2.0**53)).all():
        return "holds something that is no whole number"
    whole = cuts.astype(np.int64)
    if use.family == "cu_seqlens":
        if not len(whole) or whole[0] != 0:
            return "must begin with 0"
        whole = np.diff(whole)
    if (whole < 0).any():
        return f"gives a sequence {whole.min()} tokens"
    return whole


def _wrong_tokens(use: Use, value: Ragged, lengths: list[NDArray[np.int64]]) -> Faults:
    totals = [int(one.sum()) for one in lengths]
    return {
        row: f"{use.column} holds {n} tokens, but the lengths add up to {total}"
        for row, (n, total, known) in enumerate(
            zip(value.lengths.tolist(), totals, value.known.tolist(), strict=True)
        )
        if known and n != total
    }


def _wrong_sequences(use: Use, value: Any, lengths: list[NDArray[np.int64]]) -> Faults:
    """What is said per sequence must be said of each; or, by one value, of the whole batch."""
    faults: Faults = {}
    for row, (one, cuts) in enumerate(zip(_per_row(value), lengths, strict=True)):
        if isinstance(one, list) and len(one) != len(cuts):
            faults[row] = f"{use.column} holds {len(one)} entries for {len(cuts)} sequences"
        elif not isinstance(one, list | None) and not is_shareable(use.part):
            faults[row] = f"{use.column} holds {one!r:.40}, not a list with one entry per sequence"
    return faults


def _per_row(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [[0] * n if known else None for n, known in zip(value.lengths, value.known, strict=True)]


def _cut(batch: Batch, lengths: list[NDArray[np.int64]], count: int) -> Batch:
    """The sequences, of which the first has this number in the file."""
    each = np.array([len(one) for one in lengths], dtype=np.int64)
    flat = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    uses, values = [], []
    for use, value in zip(batch.uses, batch.values, strict=True):
        if use.family in CUTS:
            continue
        uses.append(use)
        if use.family in PER_TOKEN and use.depth:
            known = np.repeat(value.known, each)
            values.append(Ragged(value.values, np.where(known, flat, 0), known))
        else:
            values.append(_spread(value, each))
    within = np.arange(len(flat)) - np.repeat(starts(each)[:-1], each)
    numbers = np.arange(count, count + len(flat))
    rows = np.repeat(batch.rows, each)
    return Batch(uses, values, rows, batch.faults, batch.unused, within, numbers)


def _spread(value: Any, each: NDArray[np.int64]) -> Any:
    """What is said per sequence, or of all of a row, as one value per sequence."""
    if isinstance(value, list):
        spread: list[Any] = []
        for one, n in zip(value, each.tolist(), strict=True):
            spread += one if isinstance(one, list) else [one] * n
        return spread
    if value.known.all():
        return value.values
    known = np.repeat(value.known, each)
    return value.values.spread(np.flatnonzero(known), len(known))
