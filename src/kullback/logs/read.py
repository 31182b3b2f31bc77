"""From a path to one step log."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from kullback.dumps.errors import DumpError
from kullback.logs import database, event_file, mlflow_files, parquet, text, wandb_file
from kullback.logs.gather import Points, series_of
from kullback.logs.recognize import FORMATS, files_of, format_of
from kullback.logs.step_log import StepLog


def read_log(path: str | os.PathLike[str], *, run: str | None = None) -> StepLog:
    r"""Read what a trainer logged of each step, in whatever its logger wrote.

    Read are TensorBoard's event files and folders of them, W&B's offline runs
    (``run-*.wandb``), histories and exports, MLflow's folders and ``mlflow.db``, trackio's
    SQLite files, JSON lines, CSV, Parquet, and the ``trainer_state.json`` of a Hugging Face
    trainer. The format is told by what the file holds; no logger has to be installed.

    Args:
        path: A file, or a folder with files of one run or several.
        run: The run that is wanted, where there are several.

    Returns:
        The series of one run by name. Where steps go back, as after a restart, the later values
        count.

    Raises:
        DumpError: There is no such file, it is no step log, it is damaged (the sentence says
            where), or it holds several runs and none is named.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "log.jsonl"
        ...     _ = path.write_text('{"step": 1, "kl": 0.5}\n{"step": 2, "kl": NaN}\n')
        ...     log = read_log(path)
        >>> log.format, log["kl"].steps.tolist(), log["kl"].values.tolist()
        ('JSON lines', [1.0, 2.0], [0.5, nan])
    """
    where = Path(path)
    if not where.exists():
        raise DumpError(f"{where}: there is no such file or folder; check the path")
    format = format_of(where)
    if not format:
        raise DumpError(
            f"{where} is no step log that can be read here: give TensorBoard's, W&B's, MLflow's "
            "or trackio's files, or one row for each step with a column step, as JSON lines, CSV "
            "or Parquet"
        )
    try:
        points, notes = _points(where, format)
        name, series = series_of(str(where), points, run)
    except OSError as error:
        raise DumpError(f"{error.filename or where} cannot be read: {error.strerror}") from error
    return StepLog(str(where), format, name, series, (*notes, *points.notes))


def is_step_log(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a step log, and not to a dump of rollouts."""
    return bool(format_of(Path(path)))


def _points(path: Path, format: str) -> tuple[Points, list[str]]:
    files = files_of(path, format)
    notes = []
    if path.is_dir():
        others = [one for one in FORMATS if one != format and files_of(path, one)]
        notes = [f"{one} files below {path} were not read: {format} files are" for one in others]
    if format == "TensorBoard":
        runs = {file: _run_below(path, file) for file in files}
        return event_file.points(files, runs), notes
    if format == "MLflow" and files[0].is_dir():
        return mlflow_files.points(files), notes
    if format == "MLflow" and path.is_file() and not _is_database(path):
        raise DumpError(f"{path}: give the folder mlruns, or that of one run")
    if format == "trainer state":
        file = max(files, key=_global_step)  # each checkpoint holds the history up to it
        return text.state_points(file, _state(file)["log_history"]), notes
    if len(files) > 1:
        listed = ", ".join(str(one.relative_to(path)) for one in files[:8])
        raise DumpError(f"{path} holds {len(files)} {format} files: name one ({listed})")
    readers: dict[str, Callable[[Path], Points]] = {
        "W&B": wandb_file.points,
        "MLflow": database.points,
        "trackio": database.points,
        "JSON lines": text.jsonl_points,
        "CSV": text.csv_points,
        "Parquet": parquet.points,
    }
    return readers[format](files[0]), notes


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(database.MAGIC)) == database.MAGIC


def _run_below(path: Path, file: Path) -> str:
    """A run is called by its folder, as in TensorBoard."""
    return "" if path.is_file() else file.parent.relative_to(path).as_posix()


def _state(file: Path) -> dict[str, list[object]]:
    try:
        held = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DumpError(f"{file} is no JSON: {error}") from error
    if not isinstance(held, dict) or not isinstance(held.get("log_history"), list):
        raise DumpError(f"{file} has no list log_history, as the state of a trainer has")
    return held


def _global_step(file: Path) -> float:
    step = _state(file).get("global_step")
    return float(step) if isinstance(step, int | float) else -1.0
