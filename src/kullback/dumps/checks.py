"""What makes a row unusable: lists of different lengths, values that cannot be what they claim.

Such a row is left out, named and counted; it is never cut to size, padded or averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.batch import Batch, Use
from kullback.dumps.layout import PER_TOKEN, role_of
from kullback.dumps.ragged import Ragged

Faults = dict[int, str]
# Heads become [tokens, longest list]: one list of a whole vocabulary would ask for a terabyte.
LONGEST_HEAD = 1024


def sound(batch: Batch) -> tuple[Batch, NDArray[np.int64]]:
    """The rows that can be used, and the tokens of each, [rows]."""
    lengths, faults = _lengths(batch)
    lengths = np.delete(lengths, list(faults))
    batch = batch.without(faults)
    for check in (_values, _top_lengths):
        faults = check(batch)
        lengths, batch = np.delete(lengths, list(faults)), batch.without(faults)
    return batch, lengths


def per_token(batch: Batch) -> Iterator[tuple[Use, Ragged]]:
    """The columns that hold one entry per token, log-probs first."""
    for kind in PER_TOKEN:
        for use, value in zip(batch.uses, batch.values, strict=True):
            if use.family == kind and isinstance(value, Ragged):
                yield use, value


def _lengths(batch: Batch) -> tuple[NDArray[np.int64], Faults]:
    """The tokens of each row; a fault where two columns disagree or none has any."""
    size = len(batch.rows)
    lengths, owner = np.zeros(size, np.int64), np.full(size, -1)
    faults: Faults = {}
    columns: list[str] = []
    for use, value in per_token(batch):
        columns.append(use.column)
        known = owner >= 0
        for row in np.flatnonzero(known & value.known & (value.lengths != lengths)).tolist():
            faults.setdefault(
                row,
                f"{columns[owner[row]]} holds {lengths[row]} tokens and "
                f"{use.column} {value.lengths[row]}: lists of one row must be of one length",
            )
        new = value.known & ~known
        lengths[new], owner[new] = value.lengths[new], len(columns) - 1
    for row in np.flatnonzero(owner < 0).tolist():
        faults[row] = f"{columns[0]} is null, and so is every other list"
    return lengths, faults


def _values(batch: Batch) -> Faults:
    faults: Faults = {}
    for use, value in zip(batch.uses, batch.values, strict=True):
        if isinstance(value, Ragged):
            found = _LISTS[use.family](value) if use.family in _LISTS else {}
        else:
            found = _scalars(use, value)
        faults = {row: f"{use.column} {what}" for row, what in found.items()} | faults
    return faults


def _flags(value: Ragged) -> Faults:
    unknown: list[int] = np.flatnonzero(~value.known).tolist()
    faults = dict.fromkeys(unknown, "is null, where a mask is needed")
    if value.values.dtype != np.bool_:
        wrong = (value.values != 0) & (value.values != 1)
        faults |= _first(value, wrong, "holds {}: a mask is 0 or 1")
    return faults


def _ids(value: Ragged) -> Faults:
    """Ids are whole numbers; where they came as floats, NaN stands for null."""
    flat = value.values.values if isinstance(value.values, Ragged) else value.values
    if flat.dtype.kind != "f":
        return {}
    flat = flat.astype(np.float64, copy=False)  # half precision has no 2^53 to compare with
    wrong = ~np.isnan(flat) & ~((flat == np.floor(flat)) & (np.abs(flat) < 2.0**53))
    if isinstance(value.values, Ragged):
        inner = np.bincount(value.values.row_of[wrong], minlength=len(value.values)) > 0
        return dict.fromkeys(value.row_of[inner].tolist(), "holds ids that are no whole numbers")
    return _first(value, wrong, "holds {}: an id is a whole number")


def _bytes(value: Ragged) -> Faults:
    if not isinstance(value.values, Ragged):
        return {}
    numbers = value.values.values
    wrong = ~((numbers >= 0) & (numbers <= 255) & (numbers == np.floor(numbers)))
    tokens = np.bincount(value.values.row_of[wrong], minlength=len(value.values)) > 0
    rows: list[int] = value.row_of[tokens].tolist()
    return dict.fromkeys(rows, "holds numbers that are no bytes (0 to 255)")


def _prompts(value: Ragged) -> Faults:
    unknown: list[int] = np.flatnonzero(~value.known).tolist()
    return dict.fromkeys(unknown, "is null") | _ids(value)


_LISTS = {
    "mask": _flags,
    "tokens": _ids,
    "versions": _ids,
    "top_ids": _ids,
    "token_bytes": _bytes,
    "prompt": _prompts,
}


def _first(value: Ragged, wrong: NDArray[np.bool_], sentence: str) -> Faults:
    """A fault for each row with a wrong entry, by the first of them."""
    rows, places = np.unique(value.row_of[wrong], return_index=True)
    entries = value.values[wrong][places]
    return {
        int(row): sentence.format(f"{entry:g}" if entry == entry else "null")
        for row, entry in zip(rows, entries, strict=True)
    }


def _is_text(one: Any) -> bool:
    return isinstance(one, str)


def _is_whole(one: Any) -> bool:
    return type(one) is int and -(2**63) <= one < 2**63


def _is_number(one: Any) -> bool:
    return isinstance(one, float) or _is_whole(one)


def is_id(one: Any) -> bool:
    """A text, or a whole number; pandas makes floats of numbers where one is missing."""
    if isinstance(one, float):
        return one.is_integer() and abs(one) < 2**53
    return isinstance(one, str) or (type(one) is int and -(2**63) <= one < 2**64)


def _is_label(one: Any) -> bool:
    return isinstance(one, str | bool) or _is_number(one)


# What one value per row may be, by family.
_SCALARS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "a text"),
    "sampling.log_probs": (_is_text, "a text"),
    "label": (_is_label, "a number, a flag or a text"),
    "versions": (_is_whole, "a whole number"),
    "prompt_id": (is_id, "a whole number or a text"),
    "sequence_mask": (lambda one: one in (0, 1), "0 or 1"),
    "prompt": (lambda _: True, "a prompt"),
    "top_k": (lambda one: _is_whole(one) and one >= 0, "the length of a list"),
}
_NEEDED = ("prompt_id", "prompt", "sequence_mask", "top_k")


def _scalars(use: Use, value: list[Any]) -> Faults:
    fits, name = _SCALARS.get(use.family, (_is_number, "a number"))
    faults: Faults = {}
    for row, one in enumerate(value):
        if one is None or one != one:
            if use.family in _NEEDED:
                faults[row] = "is null"
        elif not fits(one):
            faults[row] = f"holds {one!r:.40}, not {name}"
    return faults


def _top_lengths(batch: Batch) -> Faults:
    """Ids and log-probs of the same top-k list must pair up."""
    faults: Faults = {}
    by_part = dict(zip((use.part for use in batch.uses), batch.values, strict=True))
    for use, ids in zip(batch.uses, batch.values, strict=True):
        if use.family != "top_ids":
            continue
        heights = by_part[f"top_log_probs.{role_of(use.part)}"]
        both = ids.known & heights.known
        for row in np.flatnonzero(ids.known != heights.known).tolist():
            faults[row] = f"{use.column} and its log-probs are not both there"
        paired = _inner_lengths(ids, both), _inner_lengths(heights, both)
        rows = np.repeat(np.flatnonzero(both), ids.lengths[both])
        for row in rows[paired[0] != paired[1]].tolist():
            faults.setdefault(row, f"{use.column} and its log-probs list different numbers of ids")
        for row in rows[paired[0] > LONGEST_HEAD].tolist():
            faults[row] = f"{use.column} lists more than {LONGEST_HEAD} ids at one token"
    return faults


def _inner_lengths(value: Ragged, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    return value.values.lengths[np.repeat(chosen, value.lengths)]
