"""Arrow's own files and streams (Feather is such a file), a record batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kullback.dumps import arrow_lists
from kullback.dumps.arrow_lists import batch_of, refusing, with_ones
from kullback.dumps.batch import Batch, Use
from kullback.dumps.layout import Held

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"


@contextmanager
def _opened(path: str, columns: Sequence[int] = ()) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import ipc

    options = ipc.IpcReadOptions(included_fields=list(columns))
    # Not mapped into memory: a file that shrinks while it is mapped kills the process.
    with refusing(path, "Arrow"), pa.OSFile(path) as source:
        is_file = source.read(len(MAGIC)) == MAGIC
        source.seek(0)
        opened = ipc.open_file if is_file else ipc.open_stream
        with opened(source, options=options) as reader:
            yield reader


def columns(path: str) -> tuple[dict[str, Held], int | None]:
    """What each column holds; and the number of rows, which a stream does not say."""
    with _opened(path) as reader:
        held = arrow_lists.columns(path, reader.schema)
        if any(one.depth > 1 for one in held.values()):
            held = with_ones(held, next(_pieces(reader), None))
        return held, reader.count_rows() if hasattr(reader, "count_rows") else None


def batches(path: str, uses: Sequence[Use]) -> Iterator[Batch]:
    """The rows of a file, as many at a time as its writer put into one record batch."""
    with _opened(path) as reader:
        names = {use.column for use in uses}
        wanted = [i for i, name in enumerate(reader.schema.names) if name in names]
    first = 0
    with _opened(path, wanted) as reader:
        for piece in _pieces(reader):
            yield batch_of(piece, uses, first)
            first += piece.num_rows


def _pieces(reader: Any) -> Iterator[pa.RecordBatch]:
    """The record batches, each checked: an offset out of bounds would be read out of bounds."""
    if hasattr(reader, "num_record_batches"):
        pieces = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        pieces = iter(reader)
    for piece in pieces:
        for column in piece.columns:
            _unspelled(column).validate(full=True)
        yield piece


def _unspelled(column: pa.Array) -> pa.Array:
    """A text as its bytes: one that is not UTF-8 is replaced later, and no reason to refuse."""
    import pyarrow as pa

    bare = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    return column.view(bare[column.type]) if column.type in bare else column
