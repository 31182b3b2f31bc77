"""The canonical writer: columns to a dump in Parquet or JSON lines that reads back the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kullback.columns import Columns, TopK
from kullback.dumps.errors import DumpError
from kullback.dumps.layout import canonical
from kullback.dumps.ragged import Ragged, starts
from kullback.heads import ABSENT
from kullback.whole_file import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

FLOATS = ("log_probs.", "entropy.", "top_log_probs.", "KL(")


def write(columns: Columns | Iterable[Columns], path: str | os.PathLike[str]) -> None:
    """Write a canonical dump: Parquet or JSON lines, by the suffix of the path.

    The file appears whole or not at all. Reading it gives the same arrays: NaN, −inf, −9999,
    empty sequences, ragged heads and missing texts included (JSON has no float32, so its numbers
    come back as float64 of the same value). A label ``prompt_id`` is written as it is; without
    one, sequences that share a cluster get its key in hexadecimal, so that they share it again.

    Args:
        columns: One batch, or several with the same columns (a ``Dump``, say).
        path: Where to; ends in .parquet or .jsonl.

    Raises:
        DumpError: The suffix is another one, there is no batch, the batches differ in their
            columns, a label has no column in a dump, or the file cannot be written.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from kullback.columns import pack
        >>> from kullback.dumps.dump import read
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.jsonl"
        ...     write(pack({"old": [[-1.0, -0.5]], "current": [[-1.5, -0.25]]}), path)
        ...     (batch,) = read(path)
        >>> batch.log_probs["current"].tolist()
        [-1.5, -0.25]
    """
    target = Path(path)
    writers = {".parquet": _write_parquet, ".jsonl": _write_jsonl}
    if target.suffix not in writers:
        raise DumpError(f"{target} names no format: end it in .parquet or .jsonl")
    chunks = iter([columns] if isinstance(columns, Columns) else columns)
    try:
        with whole_file(target) as draft:
            writers[target.suffix]((_table(chunk) for chunk in chunks), draft)
    except OSError as error:
        raise DumpError(f"{target} cannot be written: {error.strerror or error}") from error


def _table(columns: Columns) -> dict[str, Any]:
    """The canonical columns: ``Ragged`` lists, or a list with one value per row."""
    by_token: dict[str, Any] = {
        "tokens": columns.tokens,
        "token_bytes": columns.token_bytes,
        "mask": columns.mask,
        "versions": columns.versions,
    }
    by_token |= {f"log_probs.{role}": values for role, values in columns.log_probs.items()}
    by_token |= {f"entropy.{role}": values for role, values in columns.entropy.items()}
    by_token |= dict(columns.exact)
    whole: dict[str, list[Any]] = {}
    for role, head in columns.top_k.items():
        by_token[f"top_ids.{role}"], by_token[f"top_log_probs.{role}"] = _lists(head)
        whole[f"top_k.{role}"] = [head.ids.shape[1]] * len(columns.lengths)
    if columns.text is not None:
        whole["text"] = list(columns.text)
    known = np.ones(len(columns.lengths), dtype=np.bool_)
    table = {
        name: Ragged(values, columns.lengths, known)
        for name, values in by_token.items()
        if values is not None
    }
    table |= whole | _labels(columns)
    for name in table:
        if canonical(name) != name:
            raise DumpError(f"{name!r} has no column in a dump: see docs/format.md")
    return table


def _labels(columns: Columns) -> dict[str, list[Any]]:
    labels: dict[str, list[Any]] = {}
    if columns.cluster_kind == "prompt" and "prompt_id" not in columns.labels:
        labels["prompt_id"] = [f"{key:016x}" for key in columns.clusters.tolist()]
    for name, values in columns.labels.items():
        labels[name] = [None if one != one else one for one in values.tolist()]
    return labels


def _lists(head: TopK) -> tuple[Ragged, Ragged]:
    there = head.ids != ABSENT
    lengths, known = there.sum(axis=1), np.ones(len(there), dtype=np.bool_)
    return Ragged(head.ids[there], lengths, known), Ragged(head.log_probs[there], lengths, known)


def _write_parquet(tables: Iterator[dict[str, Any]], draft: Path) -> None:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetWriter

    try:
        head = _arrow(next(tables, None), None)
        with ParquetWriter(draft, head.schema, **_encodings(head.schema)) as writer:
            writer.write_table(head)
            for table in tables:
                writer.write_table(_arrow(table, head.schema))
    except (ArrowException, OverflowError, UnicodeEncodeError) as error:
        first = str(error).partition("\n")[0]
        raise DumpError(f"the columns cannot be written as Parquet: {first}") from error


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """A dictionary makes floats larger; with their bytes taken apart they compress well."""
    leaves = {name: _leaf(name, schema.field(name).type) for name in schema.names}
    floats = [leaf for name, leaf in leaves.items() if name.startswith(FLOATS)]
    return {
        "compression": "zstd",
        "use_dictionary": [leaf for leaf in leaves.values() if leaf not in floats],
        "use_byte_stream_split": floats,
        # A flipped bit in a float is a wrong number that looks like a right one.
        "write_page_checksum": True,
        "store_schema": False,
    }


def _leaf(name: str, kind: pa.DataType) -> str:
    import pyarrow as pa

    while pa.types.is_list(kind):
        name, kind = f"{name}.list.element", kind.value_type
    return name


def _arrow(table: dict[str, Any] | None, schema: pa.Schema | None) -> pa.Table:
    import pyarrow as pa

    if table is None:
        raise DumpError("there are no sequences to write")
    _same_names(None if schema is None else set(schema.names), set(table))
    arrays = {
        name: _list_array(name, value) if isinstance(value, Ragged) else _flat_array(name, value)
        for name, value in table.items()
    }
    whole = pa.table(arrays) if schema is None else pa.table(arrays).select(schema.names)
    if schema is not None and whole.schema != schema:
        whole = whole.cast(schema)
    return whole


def _same_names(before: set[str] | None, now: set[str]) -> set[str]:
    if before not in (None, now):
        raise DumpError(
            f"the batches differ in their columns: {min(before ^ now)} is not in all of them; "
            "write them to files of their own"
        )
    return now


def _flat_array(name: str, values: list[Any]) -> pa.Array:
    import pyarrow as pa

    if name in ("text", "sampling.log_probs"):
        return pa.array(values, type=pa.string())
    if name == "prompt_id":
        return pa.array(values)
    whole = name in ("step", "sampling.top_k") or name.startswith("top_k.")
    # Cast, since pa.array(…, type=int64) would cut 1.5 to 1 without a word.
    return pa.array(values).cast(pa.int64() if whole else pa.float64())


def _list_array(name: str, lists: Ragged) -> pa.Array:
    import pyarrow as pa

    values = lists.values
    if isinstance(values, Ragged):
        entries = _list_array(name, values)
    elif isinstance(values, np.ndarray):
        # Ids and versions are int32 in a dump; one that does not fit is an error, not a wrap.
        whole = values.dtype.kind in "iu"
        entries = pa.array(values).cast(pa.int32()) if whole else pa.array(values)
    else:
        entries = pa.array(list(values), type=pa.binary())
    # Without nulls Parquet has fewer levels to decode: 8 ns per value in place of 13.
    nullable = not isinstance(values, Ragged | np.ndarray)
    field = pa.field("element", entries.type, nullable=nullable)
    cuts = starts(lists.lengths)
    return pa.ListArray.from_arrays(cuts.astype(np.int32), entries, type=pa.list_(field))


def _write_jsonl(tables: Iterator[dict[str, Any]], draft: Path) -> None:
    names: set[str] | None = None
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        for table in tables:
            names = _same_names(names, set(table))
            columns = [_json_lists(v) if isinstance(v, Ragged) else v for v in table.values()]
            for row in zip(*columns, strict=True):
                file.write(json.dumps(dict(zip(table, row, strict=True))) + "\n")
    if names is None:
        raise DumpError("there are no sequences to write")


def _json_lists(lists: Ragged) -> list[list[Any]]:
    """Lists as JSON has them: null for NaN, a token's bytes as numbers."""
    values = lists.values
    if isinstance(values, Ragged):
        flat: list[Any] = _json_lists(values)
    elif isinstance(values, np.ndarray):
        flat = [None if one != one else one for one in values.tolist()]
    else:
        flat = [None if one is None else list(one) for one in values]
    ends = np.cumsum(lists.lengths).tolist()
    return [flat[end - n : end] for end, n in zip(ends, lists.lengths.tolist(), strict=True)]
