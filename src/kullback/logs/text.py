"""Step logs as text: JSON lines, CSV, and the state of a Hugging Face trainer."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from kullback.dumps.errors import DumpError
from kullback.logs.gather import TRAINERS, Point, Points, as_number, flattened

# What the step is called, the first of these that is there.
STEPS = (*TRAINERS, "_step", "step", "global_step", "Step", "training/global_step",
         "time/total_timesteps", "time/iterations", "timesteps_total", "training_iteration",
         "iteration", "iter", "update", "epoch")  # fmt: skip
TIMES = ("_timestamp", "timestamp", "wall_time", "Wall time", "time", "_runtime")
NAMES = ("tag", "name", "metric", "key")  # of a table with one number per row
_ENDS = ("__MIN", "__MAX")  # of the columns that W&B's page adds to each of an export

Row = tuple[str, dict[str, object]]  # where it stands, and what it holds


def jsonl_points(file: Path) -> Points:
    """The numbers of JSON lines, one object for each step."""
    made = Points(())
    made.points = of_rows(str(file), _lines(file, made.notes), made.notes)
    return made


def _lines(file: Path, notes: list[str]) -> Iterator[Row]:
    with file.open("rb") as stream:
        for i, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                if not line.endswith(b"\n"):
                    notes.append(f"{file.name} ends within a line: it may still be written")
                    return
                raise DumpError(f"{file}, line {i}: this is no JSON: {error}") from error
            if not isinstance(row, dict):
                raise DumpError(
                    f"{file}, line {i}: a line of a step log is an object of names and numbers"
                )
            yield f"line {i}", row


def state_points(file: Path, history: list[object]) -> Points:
    """The numbers of a trainer's state, from its ``log_history``."""
    rows = []
    for i, row in enumerate(history):
        if not isinstance(row, dict):
            raise DumpError(f"{file}: entry {i} of log_history is no object of names and numbers")
        rows.append((f"entry {i} of log_history", row))
    made = Points(())
    made.points = of_rows(str(file), iter(rows), made.notes)
    return made


def of_rows(path: str, rows: Iterator[Row], notes: list[str]) -> Iterator[Point]:
    """The numbers of rows: names to values, with the step and the time among them.

    Args:
        path: The file, for sentences.
        rows: The rows, each with where it stands.
        notes: What was done without a step is told there.
    """
    step_name, counted, without = "", 0, 0
    for place, given in rows:
        row = dict(flattened(_unwrapped(given)))
        if not step_name:
            step_name = next((one for one in STEPS if one in row), "")
            if not step_name and not counted:
                notes.append("no column is a step (step, _step, global_step): rows are counted")
        step = as_number(row.pop(step_name, None)) if step_name else float(counted)
        counted += 1
        if step is None or not math.isfinite(step):
            if step_name and given.get(step_name) not in (None, ""):
                raise DumpError(
                    f"{path}, {place}, column {step_name}: {given.get(step_name)!r} is no step"
                )
            without += 1
            continue
        time = next((t for one in TIMES if (t := as_number(row.pop(one, None))) is not None), None)
        yield from _of_row(row, step, math.nan if time is None else time)
    if without:
        notes.append(f"{without} rows without {step_name} were left out")


def _of_row(row: dict[str, object], step: float, time: float) -> Iterator[Point]:
    """One row is one number with its name, or a number for each name."""
    named = next((one for one in NAMES if isinstance(row.get(one), str)), None)
    if named and as_number(row.get("value")) is not None:
        run = row.get("run")
        yield Point(str(run or ""), str(row[named]), step, as_number(row["value"]) or 0.0, time)
        return
    for name, value in row.items():
        number = as_number(value)
        if number is not None and name not in STEPS:
            yield Point("", name, step, number, time)


def _unwrapped(row: dict[str, object]) -> dict[str, object]:
    """The numbers of a row stand in it, or in a group beside the step."""
    for group in ("data", "metrics"):
        held = row.get(group)
        if isinstance(held, dict) and any(one in row for one in STEPS):
            return {name: one for name, one in row.items() if name != group} | held
    return row


def csv_points(file: Path) -> Points:
    """The numbers of a table: one row for each step, one column for each name.

    An export of W&B's page names a column ``RUN - METRIC``; of TensorBoard's page a table has one
    metric alone, which the name of the file says.
    """
    made = Points(())
    made.points = _of_table(file, made.notes)
    return made


def _of_table(file: Path, notes: list[str]) -> Iterator[Point]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            table = csv.reader(stream)
            heads = next(table)
            runs = _runs(heads)
            rows = _cells(file, heads, table, notes)
            if runs:
                yield from _of_export(rows, runs)
            elif {"Step", "Value"} <= set(heads):
                tag = re.sub(r"^.*tag-", "", file.stem)
                named = ((place, row | {"tag": tag}) for place, row in rows)
                renamed = ((p, {"value": row.pop("Value"), **row}) for p, row in named)
                yield from of_rows(str(file), renamed, notes)
            else:
                yield from of_rows(str(file), rows, notes)
    except (csv.Error, UnicodeDecodeError) as error:
        raise DumpError(f"{file} cannot be read as CSV: {error}") from error


def _runs(heads: list[str]) -> dict[str, tuple[str, str]]:
    """Run and metric of each column of an export, if it is one."""
    found = {head: head.rpartition(" - ") for head in heads if " - " in head}
    return {head: (run, name) for head, (run, _, name) in found.items() if not name.endswith(_ENDS)}


def _of_export(rows: Iterator[Row], runs: Mapping[str, tuple[str, str]]) -> Iterator[Point]:
    for _, row in rows:
        step = next((n for one in STEPS if (n := as_number(row.get(one))) is not None), None)
        if step is None:
            continue
        for head, (run, name) in runs.items():
            number = as_number(row.get(head))
            if number is not None and name not in STEPS:
                yield Point(run, name, step, number, math.nan)


def _ends_within_a_line(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, 2) - 1))
        return stream.read() not in (b"\n", b"\r")


def _cells(
    file: Path, heads: list[str], table: Iterator[list[str]], notes: list[str]
) -> Iterator[Row]:
    """The cells of each row as numbers; of a column that holds text, as text."""
    numeric: dict[str, bool] = {}
    cut = _ends_within_a_line(file)
    if cut:
        notes.append(f"{file.name} ends within a line: its last number may be cut")
    for i, cells in enumerate(table, start=2):
        if not cells:
            continue
        if cut and len(cells) < len(heads) and next(table, None) is None:
            return  # the last line, of which more is to come
        if len(cells) != len(heads):
            raise DumpError(
                f"{file}, line {i}: {len(cells)} cells under {len(heads)} heads; is a comma or a "
                "quote missing?"
            )
        row: dict[str, object] = {}
        for head, cell in zip(heads, cells, strict=True):
            if not cell.strip():
                continue
            number = _float(cell)
            if numeric.setdefault(head, number is not None) and number is None:
                raise DumpError(
                    f"{file}, line {i}, column {head}: {cell[:40]!r} is no number, and the cells "
                    "above it are"
                )
            row[head] = number if numeric[head] else cell
        yield f"line {i}", row


def _float(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
