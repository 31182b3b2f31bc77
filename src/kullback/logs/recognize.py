"""Is this a step log, and whose? By what a file holds, not by what it is called."""

from __future__ import annotations

import json
import re
from pathlib import Path

from kullback.dumps.aliases import parts_of
from kullback.dumps.errors import DumpError
from kullback.dumps.layout import canonical, family
from kullback.logs import database, event_file, mlflow_files, parquet, wandb_file
from kullback.logs.gather import flattened
from kullback.logs.text import STEPS

# A name that speaks of a KL: kl, kld, kl_loss, but no weekly or pickle.
KL = re.compile(r"(^|[^a-z])kl([^a-z]|d$|div|$)|kullback", re.IGNORECASE)
BEGINNING = 1 << 16  # bytes by which text is told
DEEPEST = 4  # folders below the one that is named
# What is looked for in a folder, the first that is there.
FORMATS = ("TensorBoard", "W&B", "MLflow", "trackio", "trainer state")


def format_of(path: Path) -> str:
    """The format of a step log; empty where it is none (a dump of rollouts, say).

    Raises:
        DumpError: It cannot be read.
    """
    try:
        if path.is_dir():
            return next((one for one in FORMATS if files_of(path, one)), "")
        return _of_file(path) if path.is_file() else ""
    except OSError as error:
        raise DumpError(f"{error.filename or path} cannot be read: {error.strerror}") from error


def files_of(path: Path, format: str) -> list[Path]:
    """The files of a format below a folder (of MLflow's store: its folders), or the file itself."""
    if not path.is_dir():
        return [path]
    if format == "MLflow":
        found = mlflow_files.metric_folders(path)
        return found or [one for one in _below(path, "*.db") if _of_file(one) == format]
    patterns = {
        "TensorBoard": "*tfevents*",
        "W&B": "*.wandb",
        "trackio": "*.db",
        "trainer state": "trainer_state.json",
    }
    return [one for one in _below(path, patterns[format]) if _of_file(one) == format]


def _below(path: Path, pattern: str) -> list[Path]:
    found = (one for depth in range(DEEPEST) for one in path.glob("*/" * depth + pattern))
    return sorted({one.resolve(): one for one in found if one.is_file()}.values())


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(BEGINNING)
    if event_file.is_event_file(head):
        return "TensorBoard"
    if head.startswith(wandb_file.MAGIC):
        return "W&B"
    if head.startswith(database.MAGIC):
        return database.format_of(path)
    if head.startswith(parquet.MAGIC):
        held = parquet.columns(path)
        return "Parquet" if _is_log(list(held), lists=any(held.values())) else ""
    return _of_text(path, head.removeprefix(b"\xef\xbb\xbf"), whole=len(head) < BEGINNING)


def _of_text(path: Path, head: bytes, *, whole: bool) -> str:
    text = head.decode("utf-8", "replace")
    start = text.lstrip()
    if start.startswith("{"):
        lines = text.split("\n") if whole else text.split("\n")[:-1]
        rows = [row for line in lines[:50] if (row := _object(line)) is not None]
        if rows:
            if "log_history" in rows[0]:
                return "trainer state"
            names = list(dict.fromkeys(name for row in rows for name, _ in flattened(row)))
            lists = any(isinstance(one, list) for row in rows for one in row.values())
            return "JSON lines" if _is_log(names, lists=lists) else ""
        if '"log_history"' in text or path.name == "trainer_state.json":
            return "trainer state"
        return ""
    heads = [one.strip('"') for one in start.partition("\n")[0].rstrip("\r").split(",")]
    if len(heads) > 1 and "\0" not in text and _is_log(heads, lists=False):
        return "CSV"
    return ""


def _object(line: str) -> dict[str, object] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _is_log(names: list[str], *, lists: bool) -> bool:
    """A row of a log is one number for each name, at a step; tokens and their log-probs are not.

    A table with one token per row has numbers alone, too, but names its sequences or two roles.
    """
    parts = {one for name in names for one in (canonical(name, "token"), *parts_of(name)) if one}
    roles = {one for one in parts if family(one) == "log_probs"}
    of_tokens = len(roles) > 1 or parts & {"sequence", "position", "mask"}
    at_steps = any(name in STEPS or KL.search(name) for name in names)
    return at_steps and not lists and not of_tokens
