"""Rows of different lengths, as engines return them: one list of numbers, or one array, each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kullback.arrays import namespace, own

_LISTS = (list, tuple)  # no union: torch.compile traces this file, and cannot trace one


def end_to_end(values: Mapping[str, Any], lengths: Any = None) -> tuple[dict[str, Any], Any]:
    """All of it flat, and the length of each row; what is dense stays as it is.

    Args:
        values: By name, a list of rows of any lengths, or an array, or nothing. The rows are of
            NumPy, torch or JAX, or lists; gradients flow through.
        lengths: Those of flat arrays, if they were given.

    Raises:
        ValueError: Two of them have rows of different lengths, or lengths are given besides.

    Example:
        >>> flat, lengths = end_to_end({"p": [[-1.0, -2.0], [-3.0]], "mask": None})
        >>> flat["p"].tolist(), flat["mask"], lengths
        ([-1.0, -2.0, -3.0], None, [2, 1])
    """
    given = {name: one for name, one in values.items() if one is not None}
    found = {name: _lengths(one) for name, one in given.items()}
    uneven = {name: rows for name, rows in found.items() if rows}
    if not uneven:
        return dict(values), lengths
    (first, rows), *_ = uneven.items()
    if lengths is not None:
        raise ValueError(f"lengths go with flat arrays; the rows of {first} have their own")
    for name in given:
        if found[name] != rows:
            raise ValueError(_mismatch(first, rows, name, found[name]))
    return {name: _joined(one) for name, one in values.items()}, rows


def _lengths(values: Any) -> list[int] | None:
    """The length of each row, where it is a list of rows that no array can hold or will be."""
    if not isinstance(values, _LISTS) or not values:
        return None
    if not all(isinstance(row, _LISTS) or _is_flat(row) for row in values):
        return None
    lengths = [len(row) for row in values]
    return lengths if len(set(lengths)) > 1 or namespace(*values) is not np else None


def _is_flat(row: Any) -> bool:
    return len(getattr(row, "shape", ())) == 1


def _joined(values: Any) -> Any:
    if values is None:
        return None
    xp = namespace(*values)
    return xp.concatenate([own(row, xp) for row in values])


def _mismatch(first: str, lengths: list[int], name: str, others: list[int] | None) -> str:
    if others is None:
        return f"the rows of {first} differ in length, and {name} is no such list: give both alike"
    if len(lengths) != len(others):
        return f"{first} has {len(lengths)} rows, {name} {len(others)}: give both for the same rows"
    row = next(i for i, pair in enumerate(zip(lengths, others, strict=True)) if pair[0] != pair[1])
    return (
        f"{first} has {lengths[row]} tokens in row {row}, {name} {others[row]}: give both for the "
        "same tokens"
    )
