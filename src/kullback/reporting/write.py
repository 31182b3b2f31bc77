"""Reports to files, by their suffix: a page or data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kullback.estimation.summary import Summary
from kullback.reporting.document import document, source_of
from kullback.reporting.html import page
from kullback.whole_file import whole_file


def report(summary: Summary, path: str | os.PathLike[str], *, dump: Any = None) -> dict[str, Any]:
    """Write a report as a page (``.html``) or as data (``.json``), and return the data.

    Args:
        summary: What was read.
        path: The file to write; its suffix decides.
        dump: The dump that was summarized, to name its files and columns.

    Returns:
        The report as ``kullback.report/1`` (report.schema.json) has it: plain lists,
        dictionaries, strings and finite numbers, all KLs in nats.

    Raises:
        ValueError: The suffix is neither .html nor .json.
        OSError: The file cannot be written; what stood there still stands.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from kullback.columns import pack
        >>> from kullback.estimation.summary import summarize
        >>> summary = summarize([pack({"old": [[-1.0], [-0.5]], "current": [[-1.5], [-0.25]]})])
        >>> with TemporaryDirectory() as folder:
        ...     made = report(summary, Path(folder) / "report.json")
        >>> made["headline"]["question"], round(made["headline"]["estimate"]["mean"], 6)
        ('KL(old||current)', 0.125)
    """
    target = Path(path)
    writers = {".html": write_html, ".json": write_json}
    if target.suffix not in writers:
        raise ValueError(f"{target}: a report is written as .html or as .json")
    made = document(summary, None if dump is None else source_of(dump))
    writers[target.suffix](made, target)
    return made


def as_json(report: dict[str, Any]) -> str:
    """The report as JSON: keys sorted, no time stamps, so that two reports can be compared."""
    return json.dumps(report, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(report: dict[str, Any], path: Path) -> None:
    """Write the report as JSON."""
    with whole_file(path) as draft:
        draft.write_text(as_json(report), encoding="utf-8")


def write_html(
    report: dict[str, Any], path: Path, page: Callable[[dict[str, Any]], str] = page
) -> None:
    """Write the report as one page."""
    with whole_file(path) as draft:
        draft.write_text(page(report), encoding="utf-8")
