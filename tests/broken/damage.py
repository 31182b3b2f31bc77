"""What can happen to a dump: to its bytes, to single rows, to lines of JSON, to a Parquet table.

Each damage is one entry of a table. A damage to a row says what must come of it: a row to be read,
``DAMAGED`` (it must be named), or ``EITHER``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .dumps import CANONICAL, Row

DAMAGED, EITHER = "damaged", "either"
Verdict = Row | str
NAN, INF = float("nan"), float("inf")


# To the bytes of a file, whatever its format.


def _span(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randrange(len(data))
    return start, min(len(data), start + random.choice((1, 2, 8, 64, 500)))


def flip(random: Random, data: bytes, other: bytes) -> bytes:
    """One to eight bits the other way."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


def replace(random: Random, data: bytes, other: bytes) -> bytes:
    """A span of noise in place of what was there."""
    start, end = _span(random, data)
    return data[:start] + random.randbytes(end - start) + data[end:]


def zero(random: Random, data: bytes, other: bytes) -> bytes:
    """A span of zeros, as a crashed file system leaves it."""
    start, end = _span(random, data)
    return data[:start] + bytes(end - start) + data[end:]


def insert(random: Random, data: bytes, other: bytes) -> bytes:
    """Noise put between."""
    start, end = _span(random, data)
    return data[:start] + random.randbytes(end - start) + data[start:]


def delete(random: Random, data: bytes, other: bytes) -> bytes:
    """A span taken out."""
    start, end = _span(random, data)
    return data[:start] + data[end:]


def duplicate(random: Random, data: bytes, other: bytes) -> bytes:
    """A span twice."""
    start, end = _span(random, data)
    return data[:end] + data[start:]


def truncate(random: Random, data: bytes, other: bytes) -> bytes:
    """The beginning only; nothing at all now and then."""
    return data[: random.randrange(len(data))] if random.random() < 0.95 else b""


def behead(random: Random, data: bytes, other: bytes) -> bytes:
    """The end only."""
    return data[random.randrange(len(data)) :]


def splice(random: Random, data: bytes, other: bytes) -> bytes:
    """The beginning of one file and the end of another."""
    return data[: random.randrange(len(data))] + other[random.randrange(len(other)) :]


def append(random: Random, data: bytes, other: bytes) -> bytes:
    """Something behind the end: noise, or the other file."""
    return data + random.choice((random.randbytes(20), other))


BYTES: dict[str, Callable[[Random, bytes, bytes], bytes]] = {
    one.__name__: one
    for one in (flip, replace, zero, insert, delete, duplicate, truncate, behead, splice, append)
}


# To one row. Each takes a row and a column name, and returns the new row and what must come of it,
# or None where it does not apply.

Change = Callable[[Random, Row, str], tuple[Row, Verdict] | None]


def _wrapped(row: Row, name: str) -> bool:
    """Whether the column is a list of one list, as NeMo-RL writes it."""
    return name in ("generation_logprobs", "prev_logprobs", "token_loss_mask")


def _list(row: Row, name: str) -> list[Any] | None:
    value = row[name]
    if not isinstance(value, list) or name == "sample_loss_mask":
        return None
    return list(value[0] if _wrapped(row, name) else value)


def _with(row: Row, name: str, values: list[Any] | None) -> Row:
    wrap = _wrapped(row, name) and values is not None
    return row | {name: [values] if wrap else values}


def _kind(name: str) -> str:
    return CANONICAL.get(name, name).partition(".")[0].partition("(")[0]


NUMBERS = ("log_probs", "entropy", "KL")


def shorter(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """A list of a row loses its end."""
    values = _list(row, name)
    return (_with(row, name, values[:-1]), DAMAGED) if values else None


def longer(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """A list of a row repeats its last entry."""
    values = _list(row, name)
    return (_with(row, name, values + values[-1:]), DAMAGED) if values else None


def null(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """Null in place of everything that the row has in this column."""
    changed = row | {name: None}
    if _kind(name) in ("mask", "prompt_id", "prompt", "top_k", "sample_loss_mask"):
        return changed, DAMAGED
    if name in ("top_ids.rollout", "top_log_probs.rollout"):
        return changed, DAMAGED
    values = _list(row, name)
    return changed, row | {name: None if values is None else [None] * len(values)}


def absent(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """The key is not in the row."""
    found = null(random, row, name)
    return found and ({key: one for key, one in row.items() if key != name}, found[1])


def _entry(random: Random, row: Row, name: str, choices: tuple[Any, ...]) -> Row | None:
    values = _list(row, name)
    if not values:
        return None
    values[random.randrange(len(values))] = random.choice(choices)
    return _with(row, name, values)


def null_entry(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """Null in place of one entry."""
    changed = _entry(random, row, name, (None,))
    if changed is None or name.startswith("top_"):
        return None  # an empty list at one token, or a list that no longer pairs up
    return changed, DAMAGED if _kind(name) == "mask" else changed


def absurd(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """A number beyond all bounds in place of a log-prob: it is read as it is."""
    if _kind(name) not in NUMBERS:
        return None
    numbers = (1e308, -1e308, 1.7e308, 5e-324, -5e-324, INF, -INF, NAN, 800.0, -800.0, 1e9, -1e16)
    changed = _entry(random, row, name, numbers)
    return None if changed is None else (changed, changed)


def overflow(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """A whole row of log-probs whose differences overflow."""
    values = _list(row, name)
    if not values or _kind(name) != "log_probs":
        return None
    changed = _with(row, name, [random.choice((1, -1)) * 1.7e308 for _ in values])
    return changed, changed


def no_mask(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """What is neither 0 nor 1 in a mask; bools cannot hold it, JSON and integers can."""
    integers = all(type(one) is int for one in _list(row, name) or ())
    if _kind(name) != "mask" or not integers:
        return None
    changed = _entry(random, row, name, (2, -1, 255))
    return None if changed is None else (changed, DAMAGED)


def unpaired(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """Ids of the largest log-probs, and not as many log-probs."""
    values = _list(row, name)
    if not name.startswith("top_") or not values:
        return None
    place = random.randrange(len(values))
    values[place] = values[place][:-1]
    return row | {name: values}, DAMAGED


def wide(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """A whole vocabulary at one token."""
    ids, heights = row.get("top_ids.rollout"), row.get("top_log_probs.rollout")
    if not name.startswith("top_ids") or not ids or not heights:
        return None
    wide = {"top_ids.rollout": [list(range(1025)), *ids[1:]]}
    return row | wide | {"top_log_probs.rollout": [[-9.0] * 1025, *heights[1:]]}, DAMAGED


ROWS: dict[str, Change] = {
    one.__name__: one
    for one in (
        shorter,
        longer,
        null,
        absent,
        null_entry,
        absurd,
        overflow,
        no_mask,
        unpaired,
        wide,
    )
}


# What only JSON can hold.


def wrong_type(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """Something else in place of a list."""
    values = _list(row, name)
    if not values:
        return None
    wrong = ("text", "", 5, -1.5, True, {}, {"a": [1]}, [[[[1.0]]]] * len(values), [{}], ["x"])
    return row | {name: random.choice(wrong)}, DAMAGED


def wrong_entry(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """Something else in place of a number."""
    wrong: tuple[Any, ...] = ("x", "", {}, [], [[1]], {"a": 1}, "0x1p3", "1,5", "null", 10**400)
    if _kind(name) in NUMBERS:
        wrong += (True, False)
    if _kind(name) == "mask":
        wrong += (0.5, NAN, INF, -1, 2, "true")
    if name in ("tokens", "completion_ids", "versions"):
        wrong += (1.5, INF, 2**60, -(10**30), True)
    if name in ("token_bytes", "top_ids.rollout", "top_log_probs.rollout"):
        wrong = ("x", 5, {}, [{}], ["x"], [[1]], [True], True)
    if name == "token_bytes":
        wrong += ([256], [-1], [0.5], [None])
    changed = _entry(random, row, name, wrong)
    return None if changed is None else (changed, DAMAGED)


def wrong_scalar(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """Something else in place of a text, an id or a setting."""
    if isinstance(row[name], list) or name == "prompt":
        return None
    wrong: tuple[Any, ...] = ([], {}, [1, 2], {"a": None}, True)
    if isinstance(row[name], str):
        wrong += (5, 1.5)
    elif name != "prompt_id":
        wrong += ("x", "1", 10**30)
    if name in ("prompt_id", "top_k.rollout"):
        wrong += (1.5, -1.5, INF, None)
    return row | {name: random.choice(wrong)}, DAMAGED


def as_text(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """Numbers written as text, as some encoders do."""
    values = _list(row, name)
    if not values or _kind(name) != "log_probs":
        return None
    texts = [one if one is None else str(one) for one in values]
    return _with(row, name, texts), row


def more_keys(random: Random, row: Row, name: str) -> tuple[Row, Verdict] | None:
    """Keys that nobody asked for."""
    odd = ("\ud83d", "a\nb", "\x1b[31m", "", "log_probs", "x" * 5000, "KL(a", "\u202e")
    value = random.choice((1, None, [], {}, [[[[]]]], "\ud83d", 10**400, NAN, [1.5] * 3))
    return row | {random.choice(odd): value}, row


JSON_ROWS: dict[str, Change] = {
    one.__name__: one for one in (wrong_type, wrong_entry, wrong_scalar, as_text, more_keys)
}


# What can happen to a row, by what the cells of a format can hold.
CELLS: dict[str, dict[str, Change]] = {"json": ROWS | JSON_ROWS, "typed": ROWS}


# To one line of JSON.

LineChange = Callable[[Random, bytes], tuple[bytes, str]]
SAME = "same"


def cut_line(random: Random, line: bytes) -> tuple[bytes, str]:
    """A line that breaks off."""
    return line[: random.randrange(1, len(line) - 1)], DAMAGED


def double_line(random: Random, line: bytes) -> tuple[bytes, str]:
    """Two objects, or something else, on one line."""
    return line + random.choice((line, b" x", b",", b"]", b"// done", b"null")), DAMAGED


def no_utf8(random: Random, line: bytes) -> tuple[bytes, str]:
    """A byte that UTF-8 does not have."""
    place = random.randrange(1, len(line))
    return line[:place] + random.choice((b"\xff", b"\xc0", b"\xe9")) + line[place:], DAMAGED


def control(random: Random, line: bytes) -> tuple[bytes, str]:
    """A byte that JSON does not have."""
    place = random.randrange(1, len(line))
    return line[:place] + random.choice((b"\x00", b"\x1b", b"\x01\x00")) + line[place:], DAMAGED


def twice(random: Random, line: bytes) -> tuple[bytes, str]:
    """A key that stands twice, with two values."""
    row = json.loads(line)
    name = random.choice(list(row))
    value = random.choice((None, [], [-7.5], 5, "x"))
    return line[:-1] + f", {json.dumps(name)}: {json.dumps(value)}}}".encode(), DAMAGED


def deep(random: Random, line: bytes) -> tuple[bytes, str]:
    """Lists in lists in lists, or a number of five thousand digits."""
    value = random.choice(("[" * 3000 + "]" * 3000, "[" * 100_000, "1" + "0" * 5000))
    return line[:-1] + f', "x": {value}}}'.encode(), DAMAGED if len(value) != 6000 else EITHER


def spaced(random: Random, line: bytes) -> tuple[bytes, str]:
    """White space, or a byte order mark, which change nothing."""
    before = random.choice((b" ", b"\t", b"\xef\xbb\xbf", b""))
    return before + line.replace(b", ", b" ,\t") + random.choice((b"\r", b"  ", b"")), SAME


def utf16(random: Random, line: bytes) -> tuple[bytes, str]:
    """A line in another encoding (without its line feed, two bytes in it)."""
    return line.decode().encode(random.choice(("utf-16", "utf-16-be", "utf-32"))), EITHER


LINES: dict[str, LineChange] = {
    one.__name__: one
    for one in (cut_line, double_line, no_utf8, control, twice, deep, spaced, utf16)
}


# To a Parquet table: what it says stays the same, or one column becomes something else.

Written = tuple[pa.Table, dict[str, Any]]
TableChange = Callable[[Random, pa.Table], tuple[pa.Table, dict[str, Any], str]]


def rewritten(random: Random, table: pa.Table) -> tuple[pa.Table, dict[str, Any], str]:
    """Other row groups, pages, encodings and compression of the same."""
    options = {
        "row_group_size": random.choice((1, 2, 7, 1000)),
        "compression": random.choice(("none", "snappy", "gzip", "brotli", "lz4", "zstd")),
        "data_page_version": random.choice(("1.0", "2.0")),
        "data_page_size": random.choice((100, 2**20)),
        "use_dictionary": random.random() < 0.5,
        "version": random.choice(("1.0", "2.6")),
        "store_schema": random.random() < 0.5,
        "write_page_checksum": random.random() < 0.5,
    }
    return table, options, SAME


def shuffled(random: Random, table: pa.Table) -> tuple[pa.Table, dict[str, Any], str]:
    """Columns in another order, and some more."""
    names = random.sample(table.column_names, table.num_columns)
    extra = {f"extra {i}": pa.nulls(table.num_rows) for i in range(random.choice((0, 3, 300)))}
    table = table.select(names)
    for name, column in extra.items():
        table = table.append_column(name, column)
    return table, {}, SAME


def large_lists(random: Random, table: pa.Table) -> tuple[pa.Table, dict[str, Any], str]:
    """Large lists in place of lists, wide integers in place of narrow ones, and back."""

    def wide(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_list(kind):
            return pa.large_list(wide(kind.value_type))
        return pa.large_string() if pa.types.is_string(kind) else kind

    schema = pa.schema([(field.name, wide(field.type)) for field in table.schema])
    return table.cast(schema), {}, SAME


def _other_columns(random: Random, size: int) -> list[pa.Array]:
    def lists(kind: pa.DataType, value: Any) -> pa.Array:
        return pa.array([[value] * random.randrange(4) for _ in range(size)], type=pa.list_(kind))

    nested: pa.Array = pa.array([1.0] * size)
    for _ in range(random.choice((2, 5, 40))):
        nested = pa.ListArray.from_arrays(pa.array(range(len(nested) + 1), pa.int32()), nested)
    return [
        pa.nulls(size),
        pa.array([None] * size, type=pa.list_(pa.float64())),
        pa.array([-1.0] * size),
        pa.array(["-1.0"] * size),
        pa.array([True] * size),
        pa.array([0] * size, type=pa.timestamp("us")),
        pa.array([{"a": [1.0]}] * size),
        pa.array([[("a", 1.0)]] * size, type=pa.map_(pa.string(), pa.float64())),
        pa.array([b"\xff"] * size),
        lists(pa.string(), "-1.0"),
        lists(pa.bool_(), True),
        lists(pa.int8(), -1),
        lists(pa.uint64(), 2**64 - 1),
        lists(pa.null(), None),
        lists(pa.binary(), b"\xff"),
        lists(pa.decimal128(10, 2), None),
        lists(pa.struct([("a", pa.float64())]), {"a": -1.0}),
        lists(pa.list_(pa.float64()), [-1.0]),
        lists(pa.list_(pa.float64()), [-1.0, -2.0]),
        lists(pa.float16(), None),
        pa.array([[-1.0, -2.0]] * size, type=pa.list_(pa.float32(), 2)),
        nested,
    ]


def other_type(random: Random, table: pa.Table) -> tuple[pa.Table, dict[str, Any], str]:
    """A column that holds something else."""
    place = random.randrange(table.num_columns)
    column = random.choice(_other_columns(random, table.num_rows))
    return table.set_column(place, table.column_names[place], column), {}, EITHER


def renamed(random: Random, table: pa.Table) -> tuple[pa.Table, dict[str, Any], str]:
    """A column of another name, or of the name of another one."""
    names = table.column_names
    new = random.choice(("x", "", "a\nb", "log_probs.", "log_probs.x", "KL(a||b)", "mask", *names))
    names[random.randrange(len(names))] = new
    return table.rename_columns(names), {}, EITHER


def no_rows(random: Random, table: pa.Table) -> tuple[pa.Table, dict[str, Any], str]:
    """A file with columns and no row."""
    return table.slice(0, 0), {}, EITHER


def fewer_columns(random: Random, table: pa.Table) -> tuple[pa.Table, dict[str, Any], str]:
    """Columns that are not there."""
    kept = random.sample(table.column_names, random.randrange(table.num_columns))
    return table.select(kept), {}, EITHER


TABLES: dict[str, TableChange] = {
    one.__name__: one
    for one in (rewritten, shuffled, large_lists, other_type, renamed, no_rows, fewer_columns)
}


def parquet_of(table: pa.Table, options: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()
