"""The SQLite files of MLflow and of trackio: a table of metrics each."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

from kullback.dumps.errors import DumpError
from kullback.logs.gather import TRAINERS, Point, Points, as_number, flattened

MAGIC = b"SQLite format 3\x00"


def format_of(file: Path) -> str:
    """``MLflow`` or ``trackio``, by the columns of its table of metrics; empty if neither's."""
    names = _columns(file)
    if {"key", "value", "step", "run_uuid"} <= names:
        return "MLflow"
    return "trackio" if {"metrics", "step", "run_name"} <= names else ""


def points(file: Path) -> Points:
    """The metrics of all runs of a database."""
    mlflow = format_of(file) == "MLflow"
    return Points(_whole(file, _of_mlflow(file) if mlflow else _of_trackio(file)))


def _whole(file: Path, found: Iterator[Point]) -> Iterator[Point]:
    """The points, or one sentence where the file is damaged on the way."""
    try:
        yield from found
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DumpError(f"{file} cannot be read as an SQLite file: {error}") from error


def _opened(file: Path) -> closing[sqlite3.Connection]:
    # Read only, and without the journal of a writer that is still at work.
    return closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True))


def _columns(file: Path) -> set[str]:
    try:
        with _opened(file) as database:
            return {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DumpError(f"{file} cannot be read as an SQLite file: {error}") from error


def _of_mlflow(file: Path) -> Iterator[Point]:
    with _opened(file) as database:
        runs: dict[str, str] = {}
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            runs = dict(database.execute("SELECT run_uuid, name FROM runs"))
        unique = {name for name in runs.values() if list(runs.values()).count(name) == 1}
        asked = "SELECT run_uuid, key, step, value, timestamp, is_nan FROM metrics ORDER BY rowid"
        for run, name, step, value, time, is_nan in database.execute(asked):
            called = runs.get(run) if runs.get(run) in unique else run
            number = math.nan if is_nan else _number(file, name, value)
            at, when = _number(file, "step", step), _number(file, "timestamp", time)
            yield Point(str(called), str(name), at, number, when / 1000)


def _number(file: Path, name: str, value: object) -> float:
    if not isinstance(value, int | float):
        raise DumpError(f"{file}, table metrics: {name} holds {value!r}, which is no number")
    return float(value)


def _of_trackio(file: Path) -> Iterator[Point]:
    with _opened(file) as database:
        asked = "SELECT id, run_name, step, timestamp, metrics FROM metrics ORDER BY id"
        for row, run, step, said, text in database.execute(asked):
            try:
                held = dict(json.loads(text))
                time = datetime.fromisoformat(said).timestamp()
            except (ValueError, TypeError) as error:
                raise DumpError(
                    f"{file}, table metrics, id {row}: its metrics or its time cannot be read: "
                    f"{error}"
                ) from error
            named = dict(flattened(held))
            own = next(
                (at for one in TRAINERS if (at := as_number(named.get(one))) is not None), None
            )
            at = _number(file, "step", step) if own is None else own
            for name, value in named.items():
                number = as_number(value)
                if number is not None:
                    yield Point(str(run), name, at, number, time)
