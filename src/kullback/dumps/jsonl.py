"""JSON lines, read one line at a time: one object per sequence, its lists to arrays at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.batch import Batch, Fault, Use
from kullback.dumps.compression import Span, lines
from kullback.dumps.errors import DumpError
from kullback.dumps.layout import Held, expected
from kullback.dumps.ragged import Ragged, Runs

PEEK_LINES = 16
DECODED_AT_ONCE = 2**22  # bytes
LATE_AT_MOST = 1000  # names of columns, where every row has one of its own


def columns(path: str) -> tuple[dict[str, Held], int | None]:
    """What each key holds, by the first lines; the number of rows is not known before the end."""
    seen: dict[str, list[Held]] = {}
    count, objects = 0, 0
    for _, line in islice(lines(path), PEEK_LINES):
        count += 1
        row = _parsed(line)
        if isinstance(row, str):
            continue
        objects += 1
        for key, value in row.items():
            seen.setdefault(key, []).append(_held(value))
    if count and not objects:
        raise DumpError(
            f"{path} is not JSON lines: none of its first {count} lines is one whole JSON object; "
            "write one object per line"
        )
    return {key: _usual(kinds) for key, kinds in seen.items()}, None


def _usual(kinds: Sequence[Held]) -> Held:
    """What most lines hold: a few damaged lines must not decide what a column is."""
    telling = [kind for kind in kinds if kind.leaf != "nothing"] or kinds
    [((depth, leaf), _)] = Counter((kind.depth, kind.leaf) for kind in telling).most_common(1)
    alike = [kind.ones for kind in telling if (kind.depth, kind.leaf) == (depth, leaf)]
    return Held(depth, leaf, all(alike))


def _held(value: Any) -> Held:
    depth, ones = 0, isinstance(value, list) and len(value) == 1
    while isinstance(value, list):
        value, depth = next((one for one in value if one is not None), None), depth + 1
    leaves = {type(None): "nothing", bool: "flag", int: "number", float: "number", str: "text"}
    leaf = leaves.get(type(value), "other")
    return Held(0 if leaf == "other" else depth, leaf, ones)


def _parsed(line: bytes | str) -> dict[str, Any] | str:
    """The object on a line, or a sentence on what stands there."""
    if isinstance(line, str):
        return line
    try:
        row = json.loads(line, object_pairs_hook=_object)
    except DumpError as error:
        return str(error)
    except (ValueError, RecursionError) as error:
        return f"is not JSON ({str(error).partition(': ')[0]})"
    return row if isinstance(row, dict) else "is not a JSON object, one per sequence"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are there once: which of two values is meant, nobody can tell."""
    found = dict(pairs)
    if len(found) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise DumpError(f"gives {key} twice")
    return found


def batches(path: str, uses: Sequence[Use], span: Span | None = None) -> Iterator[Batch]:
    """The rows of a file, or of a span of it, some at a time."""
    decoders = [_Decoder(use) for use in uses]
    rows: list[int] = []
    values: list[list[Any]] = []
    faults: list[Fault] = []
    known: set[str] = _first_keys(path) if span else set()
    late: set[str] = set()
    size = 0
    for nth, (number, line) in enumerate(lines(path, span)):
        row = _parsed(line)
        if nth < PEEK_LINES and not span:
            known |= set() if isinstance(row, str) else row.keys()
        elif not isinstance(row, str) and len(late) < LATE_AT_MOST:
            late |= row.keys() - known
        decoded = row if isinstance(row, str) else _decoded(row, decoders)
        if isinstance(decoded, str):
            faults.append(Fault(number, decoded))
        else:
            rows.append(number)
            values.append(decoded)
        size += len(line)
        if size > DECODED_AT_ONCE:
            yield _batch(uses, rows, values, faults, late)
            rows, values, faults, size = [], [], [], 0
    if rows or faults:
        yield _batch(uses, rows, values, faults, late)


def _first_keys(path: str) -> set[str]:
    """The keys of the lines that say what there is."""
    rows = (_parsed(line) for _, line in islice(lines(path), PEEK_LINES))
    return {key for row in rows if not isinstance(row, str) for key in row}


class _Decoder:
    """What a use asks for, found out once and not on every line."""

    def __init__(self, use: Use) -> None:
        self.use = use
        self.column = use.column
        # A list of one in which the value stands, as NeMo-RL has it, nests one deeper.
        self.wrapped_depth = use.depth + 1 if use.grain == "sequence" else None
        if use.kept == "flat":
            self.decode = (_number, _numbers)[use.depth]
        else:
            self.decode = (_numbers, _nested)[use.depth - 1] if use.kept == "lists" else _plain
        if use.family == "mask":
            self.decode = _flags if self.decode is _numbers else _flag

    def __call__(self, value: Any) -> Any:
        """The decoded value; TypeError, ValueError or OverflowError if it is something else."""
        if isinstance(value, list) and len(value) == 1 and _held(value).depth == self.wrapped_depth:
            value = value[0]
        return self.decode(value)


def _decoded(row: dict[str, Any], decoders: Sequence[_Decoder]) -> list[Any] | str:
    """What the row holds for each use; or a sentence on what it should have held."""
    decoded = []
    for decoder in decoders:
        value = row.get(decoder.column)
        try:
            decoded.append(decoder(value))
        except (TypeError, ValueError, OverflowError):
            needed = expected(decoder.use.part, decoder.use.grain)
            return f"{decoder.column} holds {_short(value)}, not {needed}"
    return decoded


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _numbers(value: Any) -> NDArray[np.float64] | None:
    """A list of numbers; null becomes NaN."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise TypeError
    if bool in map(type, value):
        raise TypeError
    return _flat(value)


def _flags(value: Any) -> NDArray[np.float64] | None:
    """A mask: a list of flags, or of numbers that are checked to be 0 or 1."""
    if value is not None and not isinstance(value, list):
        raise TypeError
    return value if value is None else _flat(value)


def _flat(value: list[Any]) -> NDArray[np.float64]:
    array = np.array(value, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError
    return array


def _number(value: Any) -> float:
    """A number; null is NaN."""
    if isinstance(value, bool):
        raise TypeError
    return _flag(value)


def _flag(value: Any) -> float:
    """A flag of a mask, or a number that is checked to be 0 or 1."""
    return np.nan if value is None else float(value)


def _nested(value: Any) -> Ragged | None:
    """A list of lists of numbers."""
    if value is None:
        return None
    if not isinstance(value, list) or not all(
        isinstance(one, list) for one in value if one is not None
    ):
        raise TypeError
    flat = _numbers(list(chain.from_iterable(one or () for one in value)))
    lengths = np.array([len(one or ()) for one in value], dtype=np.int64)
    return Ragged(flat, lengths, np.array([one is not None for one in value], dtype=np.bool_))


def _plain(value: Any) -> Any:
    """Half of a surrogate pair, left where a text was cut, has no UTF-8 and becomes U+FFFD."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _batch(
    uses: Sequence[Use],
    rows: list[int],
    values: list[list[Any]],
    faults: list[Fault],
    late: set[str],
) -> Batch:
    packed = []
    for index, use in enumerate(uses):
        packed.append(_packed(use, [one[index] for one in values]))
    unused = dict.fromkeys(late, f"first seen after the {PEEK_LINES} lines that say what there is")
    return Batch(uses, packed, np.array(rows, dtype=np.int64), faults, unused)


def _packed(use: Use, column: list[Any]) -> Any:
    """What all rows hold, as the use asks for it."""
    if use.kept == "runs":
        return Runs.of(column, np.ones(len(column), dtype=np.int64))
    if use.kept == "flat":
        return Ragged.of(column) if use.depth else np.array(column, dtype=np.float64)
    if use.kept == "lists":
        return (Ragged.of, _of_nested)[use.depth - 1](column)
    return column


def _of_nested(rows: Sequence[Ragged | None]) -> Ragged:
    some = [row for row in rows if row is not None]
    inner = Ragged(
        np.concatenate([row.values for row in some]) if some else np.zeros(0),
        np.concatenate([row.lengths for row in some]) if some else np.zeros(0, np.int64),
        np.concatenate([row.known for row in some]) if some else np.zeros(0, np.bool_),
    )
    lengths = np.array([0 if row is None else len(row) for row in rows], dtype=np.int64)
    known = np.array([row is not None for row in rows], dtype=np.bool_)
    return Ragged(inner, lengths, known)
