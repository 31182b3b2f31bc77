"""Arrow arrays to packed lists, without a Python loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.batch import Batch, Use
from kullback.dumps.errors import DumpError
from kullback.dumps.layout import Held
from kullback.dumps.ragged import Ragged, Runs, TokenBytes, starts

if TYPE_CHECKING:
    import pyarrow as pa

PEEK_ROWS = 16


@contextmanager
def refusing(path: str, form: str) -> Iterator[None]:
    """What pyarrow cannot read, as one sentence."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).partition("\n")[0].rstrip(".")
        raise DumpError(f"{path} cannot be read as {form} ({first}): write it again") from error


def columns(path: str, schema: pa.Schema) -> dict[str, Held]:
    """What each column holds, by its type."""
    twice = {name for name in schema.names if schema.names.count(name) > 1}
    if twice:
        raise DumpError(f"{path} has two columns named {min(twice)}: rename one")
    return {field.name: _held(field.type) for field in schema}


def _held(kind: pa.DataType) -> Held:
    from pyarrow import types

    depth = 0
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    lists += (types.is_list_view, types.is_large_list_view)
    while any(test(kind) for test in lists):
        kind, depth = kind.value_type, depth + 1
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = {
        "number": lambda one: types.is_integer(one) or types.is_floating(one),
        "flag": types.is_boolean,
        "text": lambda one: _is(one, "string"),
        "bytes": lambda one: _is(one, "binary"),
        "nothing": types.is_null,
    }
    leaf = next((leaf for leaf, test in tests.items() if test(kind)), "other")
    return Held(0 if leaf == "other" else depth, leaf)


def _is(kind: pa.DataType, name: str) -> bool:
    """Whether it is this kind of text or bytes, in whatever layout."""
    return str(kind) in (name, f"large_{name}", f"{name}_view")


def with_ones(held: dict[str, Held], batch: pa.RecordBatch | None) -> dict[str, Held]:
    """The same, with what only data can tell: NeMo-RL's batches of one from a list per token."""

    def ones(column: str) -> bool:
        lengths = [] if batch is None else _lengths(batch.column(column)).to_pylist()
        return set(lengths) - {None} == {1}

    return held | {
        name: Held(one.depth, one.leaf, ones(name)) for name, one in held.items() if one.depth > 0
    }


def batch_of(piece: pa.RecordBatch, uses: Sequence[Use], first: int) -> Batch:
    """Some rows, of which the first is this one in the file."""
    rows = np.arange(first, first + piece.num_rows)
    values: list[Any] = []
    faults: dict[int, str] = {}
    for use in uses:
        if use.column not in piece.schema.names:
            raise _changed(use)
        value = _kept(piece.column(use.column), use)
        if use.wrapped:
            faults |= _not_one(use, value)
            value = _inner(value)
        values.append(value)
    return Batch(uses, values, rows).without(faults)


def _kept(array: pa.Array, use: Use) -> Any:
    """The column as its use asks for it."""
    now = _held(array.type)
    if (now.depth, now.leaf) != (use.held.depth, use.held.leaf):
        raise _changed(use)
    if use.kept == "runs":
        return _runs(array)
    if use.kept == "flat":
        return _lists(array, use.depth) if use.depth else _entries(array)
    if use.kept == "lists":
        return _lists(array, max(use.depth, use.held.depth))
    return _scalars(array)


def _changed(use: Use) -> Exception:
    import pyarrow as pa

    return pa.ArrowInvalid(f"column {use.column} is not what it was when the file was opened")


def _runs(array: pa.Array) -> Runs:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_null(array.type) or not len(array):
        return Runs([None][: len(array)], np.array([len(array)][: len(array)], dtype=np.int64))
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    # Equal codes are equal values; equal values of different codes are joined by ``Runs.of``.
    codes = array.indices if pa.types.is_dictionary(array.type) else array
    ends = pc.call_function("run_end_encode", [codes]).run_ends.to_numpy().astype(np.int64)
    lengths = np.diff(ends, prepend=0)
    return Runs.of(_scalars(array.take(pa.array(ends - lengths))), lengths)


def _scalars(array: pa.Array) -> list[Any]:
    try:
        return array.to_pylist()
    except UnicodeDecodeError:
        import pyarrow as pa

        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        raw = array.cast(pa.large_binary()).to_pylist()
        return [None if one is None else one.decode("utf-8", "replace") for one in raw]


def _not_one(use: Use, value: Ragged | list[Any]) -> dict[int, str]:
    """Rows that do not hold the list of one that the first rows hold."""
    lengths = value.lengths if isinstance(value, Ragged) else [len(one or ()) for one in value]
    return {
        row: f"{use.column} holds a list of {n}, where the first rows hold lists of one"
        for row, n in enumerate(lengths)
        if n > 1
    }


def _inner(value: Ragged | list[Any]) -> Ragged | list[Any]:
    """The first thing that each row's list of one holds."""
    if not isinstance(value, Ragged):
        return [one[0] if one else None for one in value]
    some = value.lengths > 0
    first = np.zeros(len(value.values), dtype=np.bool_)
    first[starts(value.lengths)[:-1][some]] = True
    return value.values.keep(first).spread(np.flatnonzero(some), len(value))


def _lists(array: pa.Array, depth: int) -> Ragged:
    import pyarrow as pa

    if pa.types.is_null(array.type):
        inner = _lists(array.slice(0, 0), depth - 1) if depth > 1 else np.zeros(0)
        return Ragged(inner, np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_))
    lengths = _lengths(array)
    known = lengths.is_valid().to_numpy(zero_copy_only=False)
    counts = lengths.fill_null(0).to_numpy().astype(np.int64)
    # flatten, unlike .values, heeds the offset of a slice and leaves out what a null list hides.
    entries = array.flatten()
    return Ragged(_lists(entries, depth - 1) if depth > 1 else _entries(entries), counts, known)


def _lengths(lists: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.call_function("list_value_length", [lists])


def _entries(entries: pa.Array) -> NDArray[Any] | TokenBytes:
    import pyarrow as pa

    if pa.types.is_dictionary(entries.type):
        entries = entries.dictionary_decode()
    if _is(entries.type, "binary"):
        return _token_bytes(entries)
    if pa.types.is_null(entries.type) or (
        entries.null_count and not pa.types.is_floating(entries.type)
    ):
        entries = entries.cast(pa.float64())
    # A null becomes NaN, in integers too (exact up to 2^53, more than any vocabulary has).
    return entries.to_numpy(zero_copy_only=False)


def _token_bytes(entries: pa.Array) -> TokenBytes:
    import pyarrow as pa

    if pa.types.is_binary_view(entries.type):
        entries = entries.cast(pa.large_binary())
    known: NDArray[np.bool_] = entries.is_valid().to_numpy(zero_copy_only=False)
    # Arrow lets a null hide bytes; a special id must have none, or ``joined`` would show them.
    entries = entries.fill_null(b"")
    _, cuts, data = entries.buffers()
    wide = np.int64 if pa.types.is_large_binary(entries.type) else np.int32
    ends = np.frombuffer(cuts, wide)[entries.offset : entries.offset + len(entries) + 1]
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return TokenBytes(held[ends[0] : ends[-1]], ends - ends[0], known)
