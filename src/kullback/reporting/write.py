"""Reports to files: the whole report or, if anything goes wrong, the file that was there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from kullback.estimation.summary import Summary
from kullback.reporting.document import document, source_of
from kullback.reporting.html import page


def report(summary: Summary, path: str | os.PathLike[str], *, dump: Any = None) -> dict[str, Any]:
    """Write a report as a page (``.html``) or as data (``.json``), and return the data.

    Args:
        summary: What was read.
        path: The file to write; its suffix decides.
        dump: The dump that was summarized, to name its files and columns.

    Raises:
        ValueError: The suffix is neither .html nor .json.
        OSError: The file cannot be written; what stood there still stands.
    """
    target = Path(path)
    made = document(summary, None if dump is None else source_of(dump))
    if target.suffix not in (".html", ".json"):
        raise ValueError(f"{target}: a report is written as .html or as .json")
    (write_html if target.suffix == ".html" else write_json)(made, target)
    return made


def as_json(report: dict[str, Any]) -> str:
    """The report as JSON: keys sorted, no time stamps, so that two reports can be compared."""
    return json.dumps(report, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(report: dict[str, Any], path: Path) -> None:
    """Write the report as JSON."""
    _replace(path, as_json(report))


def write_html(report: dict[str, Any], path: Path) -> None:
    """Write the report as one page."""
    _replace(path, page(report))


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # a crash must not leave a renamed but empty file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
