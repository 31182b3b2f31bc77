"""Rows as Python values, written by plain pyarrow or json: what a trainer would write by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Rows = list[dict[str, Any]]
Plain = Callable[..., Path]


def _plain(path: Path, rows: Rows, **options: Any) -> Path:
    if path.suffix == ".parquet":
        names = dict.fromkeys(name for row in rows for name in row)
        table = pa.table({name: [row.get(name) for row in rows] for name in names})
        pq.write_table(table, path, **options)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Plain:
    """Writes rows to a file of this name in a fresh folder."""
    return lambda name, rows, **options: _plain(tmp_path / name, rows, **options)


@pytest.fixture(params=["a.parquet", "a.jsonl"])
def either(request: pytest.FixtureRequest, plain: Plain) -> Plain:
    """Writes rows in one format, then in the other."""
    return lambda rows: plain(request.param, rows)
