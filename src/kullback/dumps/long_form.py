"""Long form: one row per token, and a column that says of which sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.batch import Batch, Fault
from kullback.dumps.checks import is_id
from kullback.dumps.errors import DumpError
from kullback.dumps.ids import Seen, mixed_keys
from kullback.dumps.layout import CUTS
from kullback.dumps.ragged import Ragged, Runs

Faults = dict[int, str]


def sequences(batches: Iterable[Batch], path: str, place: Callable[[int], str]) -> Iterator[Batch]:
    """Batches of tokens to batches of sequences, which end where another id begins.

    Args:
        batches: The rows of a file, in their order.
        path: The file, for sentences.
        place: A row as a person counts it.

    Raises:
        DumpError: An id comes back after another one: one of its sequences was already read.
    """
    seen, count = Seen(), 0
    for batch in _whole(batches):
        if not len(batch.rows):  # nothing but rows that cannot be read
            yield _joined(batch, np.zeros(0, np.int64), 0)
            continue
        ids: Runs = batch.values[_sequence(batch)]
        faults = _faults(batch, ids, place)
        sound = [i for i in range(len(ids.values)) if is_id(ids.values[i])]
        again = seen.add(mixed_keys([ids.values[i] for i in sound]))
        if again is not None:
            row = int(batch.rows[ids.firsts[sound[again]]])
            raise DumpError(
                f"{path}, {place(row)}: sequence {ids.values[sound[again]]!r} comes back after "
                "another one: its rows must follow one another, and its id be its own in the file"
            )
        joined = _joined(batch, ids.firsts, count).without(faults)
        count += len(ids.values)
        yield joined


def _sequence(batch: Batch) -> int:
    return [use.family for use in batch.uses].index("sequence")


def _whole(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same rows, cut where a sequence ends; the last one waits for what may follow.

    A row that cannot be read, between two sequences, may be a token of either: both are told.
    """
    waiting: list[Batch] = []
    faults: list[Fault] = []
    for batch in batches:
        faults += batch.faults
        bare = batch.part(0, len(batch.rows), [])
        cut = _last_begins(waiting, bare)
        if cut is None:
            waiting.append(bare)
            continue
        done = Batch.end_to_end([*waiting, bare.part(0, cut, [])])
        waiting = [bare.part(cut, len(bare.rows), [])]
        before, begun = done.rows[-1], bare.rows[cut]
        yield done.part(0, len(done.rows), [one for one in faults if one.row < begun])
        faults = [one for one in faults if one.row > before]
    if waiting:
        last = Batch.end_to_end(waiting)
        yield last.part(0, len(last.rows), faults)


def _last_begins(waiting: Sequence[Batch], batch: Batch) -> int | None:
    """Where the last sequence of a batch begins, if another one ends before it."""
    if not len(batch.rows):
        return None
    ids: Runs = batch.values[_sequence(batch)]
    cut = int(ids.firsts[-1])
    held = [one for one in waiting if len(one.rows)]
    if cut or not held:
        return cut or None
    before: Runs = held[-1].values[_sequence(batch)]
    return None if len(Runs.end_to_end([before, ids]).values) == len(before.values) else 0


def _joined(batch: Batch, firsts: NDArray[np.int64], count: int) -> Batch:
    """The sequences that begin at these rows, of which the first has this number in the file."""
    lengths = np.diff(firsts, append=len(batch.rows)) if len(firsts) else firsts
    known = np.ones(len(firsts), dtype=np.bool_)
    uses, values = [], []
    for use, value in zip(batch.uses, batch.values, strict=True):
        if use.family in CUTS:
            continue
        uses.append(use)
        if use.kept == "flat":
            values.append(Ragged(value, lengths, known))
        else:
            values.append([value.values[i] for i in value.run_of(firsts)])
    faults = [] if len(firsts) else batch.faults
    numbers = np.arange(count, count + len(firsts))
    return Batch(uses, values, batch.rows[firsts], faults, batch.unused, numbers=numbers)


def _faults(batch: Batch, ids: Runs, place: Callable[[int], str]) -> Faults:
    """The sequences that cannot be used, by their index."""
    faults: Faults = {
        i: f"{batch.uses[_sequence(batch)].column} "
        + ("is null" if one is None or one != one else f"holds {one!r:.40}, not an id")
        for i, one in enumerate(ids.values)
        if not is_id(one)
    }
    for fault in batch.faults:
        behind = int(np.searchsorted(batch.rows, fault.row))
        beside = [row for row in (behind - 1, behind) if 0 <= row < len(batch.rows)]
        for i in ids.run_of(np.array(beside, dtype=np.int64)).tolist():
            faults.setdefault(i, f"{place(fault.row)}, in it or beside it, {fault.reason}")
    for use, value in zip(batch.uses, batch.values, strict=True):
        if use.family == "position":
            faults = _out_of_order(use.column, value, ids) | faults
        elif use.kept == "runs" and use.family != "sequence":
            faults = _changing(use.column, value, ids) | faults
    return faults


def _out_of_order(column: str, position: NDArray[Any], ids: Runs) -> Faults:
    due = np.arange(len(position)) - np.repeat(ids.firsts, ids.lengths)
    wrong = np.flatnonzero(position != due)
    runs, first = np.unique(ids.run_of(wrong), return_index=True)
    return {
        int(run): f"{column} holds {position[row]:g} where {due[row]} should stand: the rows of a "
        "sequence are its tokens in order, counted from 0"
        for run, row in zip(runs, wrong[first], strict=True)
    }


def _changing(column: str, value: Runs, ids: Runs) -> Faults:
    """Sequences within which something changes that is said of a sequence as a whole."""
    first, last = value.run_of(ids.firsts), value.run_of(ids.firsts + ids.lengths - 1)
    return {
        int(i): f"{column} changes within the sequence, from {value.values[first[i]]!r:.40} to "
        f"{value.values[first[i] + 1]!r:.40}"
        for i in np.flatnonzero(first != last)
    }
