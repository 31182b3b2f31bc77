"""Parquet files, streamed by row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kullback.dumps import arrow_lists
from kullback.dumps.arrow_lists import PEEK_ROWS, batch_of, refusing, with_ones
from kullback.dumps.batch import Batch, Use
from kullback.dumps.errors import DumpError
from kullback.dumps.layout import Held

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"
# By default pyarrow holds the bytes of all row groups to come; so, it holds those of one.
_STREAMED: Any = {"pre_buffer": False, "page_checksum_verification": True}
# From this size on it holds some pages of a row group only. A small file has no need of that, and
# for a damaged page that claims two gigabytes such a buffer would take them.
BUFFERED_FROM = 2**26
# Larger than a chunk, so that most chunks are slices of one batch and need no copy.
DECODED_AT_ONCE = 2**21


@contextmanager
def _opened(path: str, coded: Sequence[str] = ()) -> Iterator[ParquetFile]:
    from pyarrow.parquet import ParquetFile

    buffer = 2**18 if _size(path) >= BUFFERED_FROM else 0
    settings = _STREAMED | {"buffer_size": buffer, "read_dictionary": coded}
    with refusing(path, "Parquet"), ParquetFile(path, **settings) as file:
        yield file


def columns(path: str) -> tuple[dict[str, Held], int | None]:
    """What each column holds, and the number of rows; only the footer is read, as a rule."""
    with _opened(path) as file:
        held = arrow_lists.columns(path, file.schema_arrow)
        if any(one.depth > 1 for one in held.values()):
            held = with_ones(held, next(file.iter_batches(PEEK_ROWS), None))
        return held, file.metadata.num_rows


def batches(path: str, uses: Sequence[Use]) -> Iterator[Batch]:
    """The rows of a file, some at a time."""
    # The same column may be two parts by --map; a table has it once.
    names = list(dict.fromkeys(use.column for use in uses))
    # A text that every token of a sequence repeats is read as its place in a dictionary.
    coded = [use.column for use in uses if use.kept == "runs" and use.held.leaf == "text"]
    first = 0
    with _opened(path, coded) as file:
        for piece in file.iter_batches(_rows_at_once(file, path, names), columns=names):
            yield batch_of(piece, uses, first)
            first += piece.num_rows
        if first != file.metadata.num_rows:
            raise DumpError(
                f"{path} says that it holds {file.metadata.num_rows} rows, and {first} could be "
                "read: write it again"
            )


def _rows_at_once(file: ParquetFile, path: str, names: Sequence[str]) -> int:
    """As many rows as hold some ``DECODED_AT_ONCE`` values: memory stays bounded.

    By the first rows and by the size of the file, at four bytes a value. The footer could count
    the values, but pyarrow ends the process where a damaged one is asked for a column's.
    """
    rows = max(file.metadata.num_rows, 1)
    first = next(file.iter_batches(PEEK_ROWS, columns=names), None)
    seen = sum(_leaves(column) for column in first.columns) // len(first) if first else 0
    return max(1, DECODED_AT_ONCE // max(seen, _size(path) // (4 * rows), 1))


def _leaves(array: pa.Array) -> int:
    """The values in a column, lists or not."""
    import pyarrow as pa

    while isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        array = array.flatten()
    return len(array)


def _size(path: str) -> int:
    return Path(path).stat().st_size
