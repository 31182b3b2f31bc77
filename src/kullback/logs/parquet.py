"""A step log as Parquet: one row for each step, one column for each name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kullback.logs.gather import Points
from kullback.logs.text import of_rows

MAGIC = b"PAR1"
ROWS = 4096  # at a time


def columns(file: Path) -> dict[str, bool]:
    """Whether each column holds lists."""
    import pyarrow.parquet as pq
    import pyarrow.types as kinds

    nested = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
    return {one.name: any(kind(one.type) for kind in nested) for one in pq.read_schema(str(file))}


def points(file: Path) -> Points:
    """The numbers of the rows."""
    made = Points(())
    made.points = of_rows(str(file), _rows(file), made.notes)
    return made


def _rows(file: Path) -> Iterator[tuple[str, dict[str, object]]]:
    import pyarrow.parquet as pq

    row = 0
    with pq.ParquetFile(str(file)) as table:
        for batch in table.iter_batches(batch_size=ROWS):
            for one in batch.to_pylist():
                yield f"row {row}", one
                row += 1
