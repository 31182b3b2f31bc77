"""Parquet files, streamed by row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kullback.dumps import arrow_lists
from kullback.dumps.arrow_lists import PEEK_ROWS, batch_of, refusing, with_ones
from kullback.dumps.batch import Batch, Use
from kullback.dumps.layout import Held

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"
# By default pyarrow holds the bytes of all row groups to come; so, it holds some pages.
_STREAMED: Any = {
    "pre_buffer": False,
    "buffer_size": 2**18,
    "page_checksum_verification": True,
}
# Larger than a chunk, so that most chunks are slices of one batch and need no copy.
DECODED_AT_ONCE = 2**21


@contextmanager
def _opened(path: str, coded: Sequence[str] = ()) -> Iterator[ParquetFile]:
    from pyarrow.parquet import ParquetFile

    settings = _STREAMED | {"read_dictionary": coded}
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
        for piece in file.iter_batches(_rows_at_once(file, names), columns=names):
            yield batch_of(piece, uses, first)
            first += piece.num_rows


def _rows_at_once(file: ParquetFile, names: Sequence[str]) -> int:
    """As many rows as hold ``DECODED_AT_ONCE`` values, by the footer: memory stays bounded."""
    metadata = file.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    leaves = [group.column(i) for group in groups for i in range(group.num_columns)]
    prefixes = tuple(f"{name}." for name in names)
    values = sum(one.num_values for one in leaves if f"{one.path_in_schema}.".startswith(prefixes))
    return max(1, DECODED_AT_ONCE * metadata.num_rows // max(values, metadata.num_rows, 1))
