"""A dump of each format that is written, read again: the same numbers, to the last bit."""

from __future__ import annotations

from functools import partial as bound
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from kullback.columns import Columns
from kullback.dumps import read, write
from kullback.selftest.line import Line, Pairs, attempted, compared
from kullback.worlds.catalogue import CLEAN_WORLDS

FORMATS = {"Parquet": ".parquet", "JSON lines": ".jsonl"}
EXACTLY = 0.0  # allowed


def files() -> tuple[Line, ...]:
    """A line for each format."""
    return tuple(attempted(name, bound(_line, name)) for name in FORMATS)


def _line(name: str) -> Line:
    columns = CLEAN_WORLDS["three_token_language"](8).sample(np.random.default_rng(0), exact=True)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"rollouts{FORMATS[name]}"
        write(columns, path)
        [again] = read(path)
    return compared(name, _pairs(again, columns), EXACTLY)


def _pairs(again: Columns, columns: Columns) -> Pairs:
    yield again.lengths, columns.lengths
    for role, values in columns.log_probs.items():
        yield again.log_probs[role], values
        yield again.entropy[role], columns.entropy[role]
    for name, values in columns.exact.items():
        yield again.exact[name], values
