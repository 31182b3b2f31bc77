"""Small valid dumps as rows of Python values, what the rows mean, and the formats of the files."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

Row = dict[str, Any]
K = 3
SPECIAL = (None, None, -9999.0, 0.0, -0.0, float("-inf"))


def log_prob(random: random.Random) -> float | None:
    """Mostly a log-prob that float32 holds, so that every format gives it back."""
    if random.random() < 0.04:
        return random.choice(SPECIAL)
    return -random.randrange(1, 2**12) / 2**8


def plain(random: random.Random, tokens: int) -> Row:
    return {
        "log_probs.rollout": [log_prob(random) for _ in range(tokens)],
        "log_probs.old": [log_prob(random) for _ in range(tokens)],
        "mask": [random.random() < 0.9 for _ in range(tokens)],
    }


def full(random: random.Random, tokens: int) -> Row:
    """Everything that a canonical dump can say."""
    ids = [random.randrange(50) for _ in range(tokens)]
    return {
        "tokens": ids,
        **plain(random, tokens),
        "log_probs.reference": [log_prob(random) for _ in range(tokens)],
        "entropy.rollout": [random.randrange(2**8) / 2**6 for _ in range(tokens)],
        "KL(old||reference)": [random.randrange(2**8) / 2**8 for _ in range(tokens)],
        "top_ids.rollout": [random.sample(range(50), K) for _ in range(tokens)],
        "top_log_probs.rollout": [[-0.5, -1.25, -2.5]] * tokens,
        "top_k.rollout": K,
        "versions": [random.randrange(3) for _ in range(tokens)],
        "token_bytes": [[97 + one % 26] for one in ids],
        "text": "".join(chr(97 + one % 26) for one in ids),
        "prompt_id": random.randrange(4),
        "step": random.randrange(9),
        "sampling.temperature": 1.0,
        "sampling.log_probs": "raw",
    }


def trl(random: random.Random, tokens: int) -> Row:
    rollout, old, mask = plain(random, tokens).values()
    return {
        "prompt": random.choice(["one", "two", "three"]),
        "completion_ids": [random.randrange(50) for _ in range(tokens)],
        "sampling_per_token_logps": rollout,
        "old_per_token_logps": old,
        "completion_mask": [int(one) for one in mask],
    }


def nemo(random: random.Random, tokens: int) -> Row:
    """A batch of one per row: every value is a list of length one."""
    rollout, old, mask = plain(random, tokens).values()
    return {
        "generation_logprobs": [rollout],
        "prev_logprobs": [old],
        "token_loss_mask": [[int(one) for one in mask]],
        "sample_loss_mask": [1],
    }


LAYOUTS: dict[str, Callable[[random.Random, int], Row]] = {
    "plain": plain,
    "full": full,
    "trl": trl,
    "nemo": nemo,
}
# What the columns of other projects are in a canonical dump.
CANONICAL = {
    "completion_ids": "tokens",
    "sampling_per_token_logps": "log_probs.rollout",
    "old_per_token_logps": "log_probs.old",
    "completion_mask": "mask",
    "generation_logprobs": "log_probs.rollout",
    "prev_logprobs": "log_probs.old",
    "token_loss_mask": "mask",
}


def rows(random: random.Random, layout: str, count: int) -> list[Row]:
    """Sequences of up to six tokens; the first has one, so that each column holds something."""
    return [LAYOUTS[layout](random, random.randrange(7) or int(i == 0)) for i in range(count)]


def meaning(row: Row) -> Row:
    """What a row says, by canonical column; None for a number that is not there."""
    said = {}
    for name, value in row.items():
        if name == "sample_loss_mask":
            continue
        if isinstance(value, list) and name in CANONICAL and value and isinstance(value[0], list):
            (value,) = value
        said[CANONICAL.get(name, name)] = value
    said["mask"] = [bool(one) for one in said["mask"]]
    return said


@dataclass(frozen=True)
class Format:
    """A layout of files.

    Args:
        suffix: How their names end.
        write: Rows to the bytes of a file; columns have the types of the second argument's rows.
        cells: What a cell may hold, a key of ``damage.CELLS``: ``json`` anything, ``typed`` what
            the type of its column allows; None where a row of the file is no sequence: there the
            bytes are damaged only.
        checked: Whether a flipped bit in a number is told from another number.
        keys: Where each of the rows stands: its row in the file, and which sequence of it, if it
            holds several.
        layouts: Whose columns it can hold.
    """

    suffix: str
    write: Callable[[list[Row], list[Row]], bytes]
    cells: str | None
    checked: bool = False
    keys: Callable[[list[Row]], list[int]] = lambda rows: list(range(len(rows)))
    layouts: tuple[str, ...] = tuple(LAYOUTS)


def json_lines(rows: list[Row], _: list[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def table(rows: list[Row], typed_like: list[Row]) -> pa.Table:
    """The rows as an Arrow table, with the types that undamaged rows have."""
    columns = {}
    for name in typed_like[0]:
        kind = pa.array([row[name] for row in typed_like]).type
        columns[name] = pa.array([row.get(name) for row in rows], type=kind)
    return pa.table(columns)


def parquet(rows: list[Row], typed_like: list[Row]) -> bytes:
    file = io.BytesIO()
    pq.write_table(table(rows, typed_like), file, row_group_size=5, compression="none")
    return file.getvalue()


def checked_parquet(rows: list[Row], typed_like: list[Row]) -> bytes:
    file = io.BytesIO()
    pq.write_table(table(rows, typed_like), file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def zipped(rows: list[Row], _: list[Row]) -> bytes:
    return gzip.compress(json_lines(rows, rows), mtime=0)


def zstandard(rows: list[Row], _: list[Row]) -> bytes:
    return pa.Codec("zstd").compress(json_lines(rows, rows), asbytes=True)


def arrow(opened: Any) -> Callable[[list[Row], list[Row]], bytes]:
    def write(rows: list[Row], typed_like: list[Row]) -> bytes:
        whole, file = table(rows, typed_like), io.BytesIO()
        with opened(file, whole.schema) as writer:
            writer.write_table(whole, max_chunksize=5)
        return file.getvalue()

    return write


PACKED = 4  # sequences to a row
PER_TOKEN = ("log_probs", "entropy", "KL(", "mask", "tokens", "versions", "token_bytes", "top_ids",
             "top_log_probs")  # fmt: skip


def packed(rows: list[Row]) -> list[Row]:
    """Some sequences to a row, end to end, with their lengths."""
    found = []
    for first in range(0, len(rows), PACKED):
        some = rows[first : first + PACKED]
        row: Row = {"lengths": [len(one["mask"]) for one in some]}
        for name in some[0]:
            each = [one[name] for one in some]
            row[name] = [x for one in each for x in one] if name.startswith(PER_TOKEN) else each
        found.append(row)
    return found


def packed_key(row: int, within: int) -> int:
    return 1000 * row + within


def long(rows: list[Row]) -> list[Row]:
    """A row per token."""
    found = []
    for i, one in enumerate(rows):
        each = [name for name in one if name.startswith(PER_TOKEN)]
        whole = {name: value for name, value in one.items() if name not in each}
        for j in range(len(one["mask"])):
            token = {name: one[name][j] for name in each}
            found.append({"sequence": i, "position": j} | token | whole)
    return found


def long_keys(rows: list[Row]) -> list[int]:
    """The first row of each sequence; one without a token has none, and is not there."""
    lengths = [len(one["mask"]) for one in rows]
    return [sum(lengths[:i]) for i, n in enumerate(lengths) if n]


def npz(rows: list[Row], _: list[Row]) -> bytes:
    """Flat arrays; a number that is not there is NaN."""
    arrays: dict[str, Any] = {"lengths": np.array([len(one["mask"]) for one in rows])}
    for name in rows[0]:
        kind = bool if name == "mask" else np.float64
        flat = [x for one in rows for x in one[name]]
        arrays[name] = np.array([np.nan if x is None else x for x in flat], dtype=kind)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


PACKED_KEYS: Any = {
    "keys": lambda rows: [packed_key(i // PACKED, i % PACKED) for i in range(len(rows))],
    "layouts": ("plain", "full"),
}
FORMATS = {
    "jsonl": Format(".jsonl", json_lines, "json"),
    "parquet": Format(".parquet", parquet, "typed"),
    "checked parquet": Format(".parquet", checked_parquet, "typed", checked=True),
    "gzip": Format(".jsonl.gz", zipped, "json"),
    "zstd": Format(".jsonl.zst", zstandard, "json"),
    "arrow": Format(".arrow", arrow(ipc.new_file), "typed"),
    "arrow stream": Format(".arrow", arrow(ipc.new_stream), "typed"),
    "npz": Format(".npz", npz, None, checked=True, layouts=("plain",)),
    "packed jsonl": Format(
        ".jsonl", lambda rows, _: json_lines(packed(rows), rows), None, **PACKED_KEYS
    ),
    "packed parquet": Format(
        ".parquet", lambda rows, like: parquet(packed(rows), packed(like)), None, **PACKED_KEYS
    ),
    "long jsonl": Format(
        ".jsonl", lambda rows, _: json_lines(long(rows), rows), None,
        keys=long_keys, layouts=("plain", "full"),
    ),
    "long parquet": Format(
        ".parquet", lambda rows, like: parquet(long(rows), long(like)), None,
        keys=long_keys, layouts=("plain", "full"),
    ),
}  # fmt: skip
