"""MLflow's file store: a folder for each run, and in it a text file for each metric."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kullback.dumps.errors import DumpError
from kullback.logs.gather import Point, Points


def metric_folders(folder: Path) -> list[Path]:
    """The folders of metrics below a folder: that of a run, of an experiment, or of all.

    A folder of this name that holds something else is none.
    """
    found = [folder] if folder.name == "metrics" else sorted(folder.rglob("metrics"))
    return [one for one in found if one.is_dir() and _holds_metrics(one)]


def _holds_metrics(folder: Path) -> bool:
    file = next((one for one in folder.rglob("*") if one.is_file()), None)
    if file is None:
        return False
    first = file.read_text(encoding="utf-8", errors="replace").partition("\n")[0].split()
    return len(first) in (2, 3) and first[0].isdigit()


def points(folders: list[Path]) -> Points:
    """The metrics of all runs; a run is called by its name, or else by its folder."""
    made = Points(())
    made.points = (
        point
        for folder in folders
        for file in sorted(one for one in folder.rglob("*") if one.is_file())
        for point in _points(file, _run(folder), file.relative_to(folder).as_posix(), made.notes)
    )
    return made


def _run(folder: Path) -> str:
    meta = folder.parent / "meta.yaml"
    if meta.is_file():
        said = re.search(r"^run_name:\s*(.+?)\s*$", meta.read_text(encoding="utf-8"), re.MULTILINE)
        if said:
            return said[1].strip("'\"")
    return folder.parent.name


def _points(file: Path, run: str, name: str, notes: list[str]) -> Iterator[Point]:
    """Lines of a time in milliseconds, a value and a step."""
    text = file.read_text(encoding="utf-8", errors="replace")
    lines = text.split("\n")
    for i, line in enumerate(lines[:-1]):
        parts = line.split()
        try:
            time, value, step = (float(part) for part in (*parts, str(i))[:3])
        except ValueError as error:
            raise DumpError(
                f"{file}, line {i + 1}: {line[:60]!r} is no line of a metric: a time in "
                "milliseconds, a value and a step, with blanks between them"
            ) from error
        yield Point(run, name, step, value, time / 1000)
    if lines[-1].strip():
        notes.append(f"{file.name} ends within a line: it may still be written")
