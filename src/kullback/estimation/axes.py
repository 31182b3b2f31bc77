"""Axes: by what tokens are filed when a KL is split, and what such a split can be taken for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns
from kullback.estimation.bins import MOST, low_ends, powers_of_two, width_for
from kullback.levels import segment_sums

Key = float | str | None  # of a cell: a number, a text, or None where nothing was logged

BUILT_IN = ("position", "step", "staleness", "length")
USUAL = ("step", "position", "staleness")  # what a report is split by, asked or not, if it can be
IN_POWERS = ("position", "length")
# A cell of these holds some tokens of a sequence, not all of it: its KL is one per token.
BY_TOKEN = ("position", "staleness")
# What is settled before the token is drawn. To split by anything else may be to select on what
# was drawn, and then k1 and k3 are biased however honest the sampler (exact columns are not).
_SETTLED = frozenset(
    {
        *("position", "step", "epoch", "staleness"),
        *("prompt_id", "task", "dataset", "data_source"),
        *("temperature", "top_p", "top_k", "min_p"),
    }
)
_WHOLE = 2.0**53  # up to here float64 tells whole numbers apart


def settled(axis: str) -> bool:
    """Whether the axis is known before the token is drawn, so that a split by it selects nothing.

    Example:
        >>> settled("step"), settled("sampling.temperature"), settled("reward")
        (True, True, False)
    """
    return axis in _SETTLED or axis.startswith("sampling.")


@dataclass(frozen=True, slots=True)
class Parts:
    """A batch cut along an axis: a part is what one sequence has in one cell.

    Args:
        keys: The cells, [cells].
        width: The width of their bins as a power of two; None where each value has its own.
        whole: Whether every number is whole.
        cell: The cell of each part, ascending, [parts].
        sequence: The sequence of each part, [parts].
        of_token: The part of each token in the mask; one past the last for the others, [tokens].
    """

    keys: list[Key]
    width: int | None
    whole: bool
    cell: NDArray[np.int64]
    sequence: NDArray[np.int64]
    of_token: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Columns, axis: str, usable: NDArray[np.bool_]) -> Parts:
        """Cut a batch; the tokens outside the mask are in no part.

        Raises:
            ValueError: The axis is not logged, or its values are none of an axis.
        """
        values = _values(columns, axis, usable)
        mask, sequence = columns.mask, columns.sequence_of_token
        if axis in BY_TOKEN:
            keys, width, whole, cell = _filed(axis, values[mask])
        else:
            there = np.unique(sequence[mask])
            keys, width, whole, own = _filed(axis, values[there])
            cells = np.zeros(len(columns.lengths), dtype=np.int64)
            cells[there] = own
            cell = cells[sequence[mask]]
        codes = cell * len(columns.lengths) + sequence[mask]
        parts, inverse = np.unique(codes, return_inverse=True)
        of_token = np.full(len(columns), len(parts), dtype=np.int64)
        of_token[mask] = inverse
        size = max(len(columns.lengths), 1)
        return cls(keys, width, whole, parts // size, parts % size, of_token)


def require_axes(columns: Columns, axes: Iterable[str]) -> None:
    """Refuse an axis that the batch does not have.

    Raises:
        ValueError: Says what to log or how to read it.
    """
    for axis in axes:
        if axis == "staleness":
            _require_staleness(columns)
        elif axis == "step" and axis not in columns.labels:
            raise ValueError(
                "by step: no step was read; log a column step, one number per sequence, or map "
                "the one that is it (step=COLUMN)"
            )
        elif axis not in (*BUILT_IN, *columns.labels):
            there = ", ".join(columns.labels) or "none"
            raise ValueError(
                f"by {axis}: it is neither {', '.join(BUILT_IN)} nor a label that was read "
                f"({there}); read the column with kb.read(files, labels=[{axis!r}])"
            )


def _require_staleness(columns: Columns) -> None:
    absent = [name for name in ("step",) if name not in columns.labels]
    absent += ["versions"] if columns.versions is None else []
    if absent and "staleness" not in columns.labels:
        raise ValueError(
            f"by staleness: it is step - versions, and there is no {' and no '.join(absent)}; log "
            "step, one number per sequence, and versions, that of the weights that sampled each "
            "token, counted alike; or a column staleness, one number per sequence"
        )


def _values(columns: Columns, axis: str, usable: NDArray[np.bool_]) -> NDArray[Any]:
    """What each token (``BY_TOKEN``) or each sequence (the others) is filed under."""
    if axis == "length":
        return powers_of_two(segment_sums(usable.astype(np.float64), columns.lengths))
    if axis == "position":
        counted = np.cumsum(columns.mask)
        before = np.concatenate([[0], counted])[columns.starts]
        return powers_of_two(counted - columns.mask - np.repeat(before, columns.lengths))
    if axis == "staleness":
        return _staleness(columns)
    return columns.labels[axis]


def _staleness(columns: Columns) -> NDArray[Any]:
    versions = columns.versions
    if versions is None or "step" not in columns.labels:
        return np.repeat(columns.labels["staleness"], columns.lengths)
    step = np.repeat(columns.labels["step"].astype(np.float64), columns.lengths)
    behind = np.where(versions < 0, np.nan, step - versions)  # a version that was not logged is −1
    early = np.flatnonzero(columns.mask & (behind < 0))
    if len(early):
        token = int(early[0])
        raise ValueError(
            f"by staleness: step {step[token]:g} comes before version {versions[token]} of the "
            f"weights ({columns.place(token)}), so the two count differently: log both by one "
            "count, or a column staleness without one of them"
        )
    return behind


def _filed(
    axis: str, values: NDArray[Any]
) -> tuple[list[Key], int | None, bool, NDArray[np.int64]]:
    """Cells, width, whether all is whole, and the cell of each value."""
    numbers = values
    if values.dtype.kind not in "iuf":
        entries = values.tolist()
        if any(isinstance(one, str | bool) for one in entries):
            return _filed_texts(axis, entries)
        numbers = np.array([_number(axis, one) for one in entries], dtype=np.float64)
    elif values.dtype.kind in "iu" and len(values):
        _number(axis, int(values.min()))
        _number(axis, int(values.max()))
    distinct, index = np.unique(numbers.astype(np.float64), return_inverse=True)
    missing = bool(len(distinct)) and bool(np.isnan(distinct[-1]))
    numbers = distinct[: len(distinct) - missing]
    width = None if axis in IN_POWERS else width_for(numbers)
    ends, bins = np.unique(low_ends(numbers, width), return_inverse=True)
    keys: list[Key] = ends.tolist()
    if missing:
        keys, bins = [*keys, None], np.append(bins, len(ends))
    whole = bool((np.floor(numbers) == numbers).all())
    return keys, width, whole, bins[index]


def _filed_texts(
    axis: str, values: list[Any]
) -> tuple[list[Key], int | None, bool, NDArray[np.int64]]:
    named = [_text(axis, one) for one in values]
    texts = sorted({one for one in named if one is not None})
    require_few(axis, len(texts))
    keys: list[Key] = [*texts, None] if None in named else [*texts]
    place = {key: i for i, key in enumerate(keys)}
    return keys, None, True, np.array([place[one] for one in named], dtype=np.int64)


def _number(axis: str, one: Any) -> float:
    if one is None:
        return float("nan")
    if not isinstance(one, int | float):
        raise ValueError(f"by {axis}: it holds {one!r:.40}; an axis is a number, a flag or a text")
    if isinstance(one, int) and abs(one) > _WHOLE:
        raise ValueError(
            f"by {axis}: it holds {one}; whole numbers beyond 2^53 are names, no quantities: write "
            "them as text"
        )
    return float(one)


def _text(axis: str, one: Any) -> str | None:
    if one is None or one != one:
        return None
    if isinstance(one, bool):
        return str(one).lower()
    if not isinstance(one, str):
        raise mixed(axis)
    return one


def require_few(axis: str, texts: int) -> None:
    """Refuse an axis of more than 64 different texts.

    Raises:
        ValueError: There are more.
    """
    if texts > MOST:
        raise ValueError(
            f"by {axis}: it holds more than {MOST} different texts; split by a column with fewer"
        )


def mixed(axis: str) -> ValueError:
    """The refusal of an axis that is a number here and a text there."""
    return ValueError(
        f"by {axis}: it holds numbers in some rows and texts in others; write it one way"
    )
