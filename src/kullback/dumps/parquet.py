"""Parquet files, streamed by row group: list columns to packed arrays, without a Python loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kullback.dumps.batch import Batch, Filling, Use
from kullback.dumps.errors import DumpError
from kullback.dumps.layout import Held
from kullback.dumps.ragged import Ragged, TokenBytes, starts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"
PEEK_ROWS = 16
# By default pyarrow holds the bytes of all row groups to come; so, it holds those of one.
_STREAMED: Any = {"pre_buffer": False, "page_checksum_verification": True}
# From this size on it holds some pages of a row group only. A small file has no need of that, and
# for a damaged page that claims two gigabytes such a buffer would take them.
BUFFERED_FROM = 2**26
# Larger than a chunk, so that most chunks are slices of one batch and need no copy.
DECODED_AT_ONCE = 2**21


@contextmanager
def _opened(path: str) -> Iterator[ParquetFile]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        buffer = 2**18 if Path(path).stat().st_size >= BUFFERED_FROM else 0
        with ParquetFile(path, buffer_size=buffer, **_STREAMED) as file:
            yield file
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).partition("\n")[0].rstrip(".")
        raise DumpError(f"{path} cannot be read as Parquet ({first}): write it again") from error


def columns(path: str) -> tuple[dict[str, Held], int | None]:
    """What each column holds, and the number of rows; only the footer is read, as a rule."""
    with _opened(path) as file:
        schema = file.schema_arrow
        twice = {name for name in schema.names if schema.names.count(name) > 1}
        if twice:
            raise DumpError(f"{path} has two columns named {min(twice)}: rename one")
        held = {field.name: _held(field.type) for field in schema}
        if any(one.depth > 1 for one in held.values()):
            # Only data can tell NeMo-RL's batches of one from a list per token.
            held |= _ones(next(file.iter_batches(PEEK_ROWS), None), held)
        return held, file.metadata.num_rows


def _held(kind: pa.DataType) -> Held:
    from pyarrow import types

    depth = 0
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind, depth = kind.value_type, depth + 1
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = {
        "number": lambda one: types.is_integer(one) or types.is_floating(one),
        "flag": types.is_boolean,
        "text": lambda one: types.is_string(one) or types.is_large_string(one),
        "bytes": lambda one: types.is_binary(one) or types.is_large_binary(one),
        "nothing": types.is_null,
    }
    leaf = next((leaf for leaf, test in tests.items() if test(kind)), "other")
    return Held(0 if leaf == "other" else depth, leaf)


def _ones(batch: pa.RecordBatch | None, held: dict[str, Held]) -> dict[str, Held]:
    def ones(column: str) -> bool:
        lengths = [] if batch is None else _lengths(batch.column(column)).to_pylist()
        return set(lengths) - {None} == {1}

    return {
        name: Held(one.depth, one.leaf, ones(name)) for name, one in held.items() if one.depth > 0
    }


def batches(path: str, uses: Sequence[Use]) -> Iterator[Batch]:
    """The rows of a file, a chunk at a time."""
    import pyarrow as pa

    # The same column may be two parts by --map; a table has it once.
    names = list(dict.fromkeys(use.column for use in uses))
    measure = next(use for use in uses if use.family == "log_probs")
    filling, pieces, first = Filling(), [], 0
    with _opened(path) as file:
        at_once = _rows_at_once(file, path, names)
        for piece in file.iter_batches(at_once, columns=names):
            start = 0
            for row, tokens in enumerate(_sizes(piece.column(measure.column), measure)):
                if filling.closes_before(tokens):
                    table = pa.Table.from_batches([*pieces, piece.slice(start, row - start)])
                    yield _batch(table, uses, first)
                    pieces, start, first = [], row, first + table.num_rows
            pieces.append(piece.slice(start))
        rows = first + sum(map(len, pieces))
        if rows != file.metadata.num_rows:
            raise DumpError(
                f"{path} says that it holds {file.metadata.num_rows} rows, and {rows} could be "
                "read: write it again"
            )
        if pieces:
            yield _batch(pa.Table.from_batches(pieces), uses, first)


def _rows_at_once(file: ParquetFile, path: str, names: Sequence[str]) -> int:
    """As many rows as hold some ``DECODED_AT_ONCE`` values: memory stays bounded.

    By the first rows and by the size of the file, at four bytes a value. The footer could count
    the values, but pyarrow ends the process where a damaged one is asked for a column's.
    """
    rows = max(file.metadata.num_rows, 1)
    first = next(file.iter_batches(PEEK_ROWS, columns=names), None)
    seen = sum(_leaves(column) for column in first.columns) // len(first) if first else 0
    return max(1, DECODED_AT_ONCE // max(seen, Path(path).stat().st_size // (4 * rows), 1))


def _leaves(array: pa.Array) -> int:
    """The values in a column, lists or not."""
    import pyarrow as pa

    while isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        array = array.flatten()
    return len(array)


def _sizes(array: pa.Array, use: Use) -> list[int]:
    """The tokens of each row."""
    if use.held.depth > use.depth:
        lists = _lists(array, use.held.depth)
        return np.bincount(lists.row_of, lists.values.lengths, len(lists)).astype(int).tolist()
    return _lengths(array).fill_null(0).to_pylist()


def _batch(table: pa.Table, uses: Sequence[Use], first: int) -> Batch:
    rows = np.arange(first, first + table.num_rows)
    values: list[Any] = []
    faults: dict[int, str] = {}
    for use in uses:
        array = table[use.column].combine_chunks()
        value = _lists(array, max(use.depth, use.held.depth)) if use.depth else _scalars(array)
        if use.held.depth > use.depth:
            faults |= _not_one(use, value)
            value = _inner(value)
        values.append(value)
    return Batch(uses, values, rows, {}).without(faults)


def _scalars(array: pa.Array) -> list[Any]:
    try:
        return array.to_pylist()
    except UnicodeDecodeError:
        import pyarrow as pa

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
    if pa.types.is_binary(entries.type) or pa.types.is_large_binary(entries.type):
        return _token_bytes(entries)
    if pa.types.is_null(entries.type) or (
        entries.null_count and not pa.types.is_floating(entries.type)
    ):
        entries = entries.cast(pa.float64())
    # A null becomes NaN, in integers too (exact up to 2^53, more than any vocabulary has).
    return entries.to_numpy(zero_copy_only=False)


def _token_bytes(entries: pa.Array) -> TokenBytes:
    import pyarrow as pa

    known: NDArray[np.bool_] = entries.is_valid().to_numpy(zero_copy_only=False)
    # Arrow lets a null hide bytes; a special id must have none, or ``joined`` would show them.
    entries = entries.fill_null(b"")
    _, cuts, data = entries.buffers()
    wide = np.int64 if pa.types.is_large_binary(entries.type) else np.int32
    ends = np.frombuffer(cuts, wide)[entries.offset : entries.offset + len(entries) + 1]
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return TokenBytes(held[ends[0] : ends[-1]], ends - ends[0], known)
