"""``kullback report`` of a step log: read it, judge its KL series, say what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kullback.cli.delivery import deliver


def is_log(files: Sequence[str]) -> bool:
    """Whether what is named is a step log, and not dumps of rollouts.

    Raises:
        ValueError: Several files are named, and one of them is a step log.
    """
    from kullback.logs.read import is_step_log

    logs = [name for name in files if is_step_log(name)]
    if logs and len(files) > 1:
        raise ValueError(f"{logs[0]} is a step log: give one log at a time, and no dump with it")
    return bool(logs)


def why_no_log(files: Sequence[str]) -> str:
    """Why what is named is not read as a step log, as a sentence goes on."""
    from pathlib import Path

    if not files:
        return "--demo is a dump"
    if not Path(files[0]).exists():
        return f"{files[0]}: there is no such file or folder; check the path"
    return (
        f"{files[0]} holds none of TensorBoard, W&B, MLflow, trackio or a Hugging Face trainer, "
        "and no rows of numbers with a step"
    )


def report_log(
    path: str,
    *,
    framework: str | None,
    tokens: int | None,
    run: str | None,
    html: str | None,
    json: str | None,
) -> dict[str, Any]:
    """Judge a step log, and write and print what it shows.

    Args:
        path: The log.
        framework: The trainer that wrote it, if known.
        tokens: Tokens of a step, where the log does not say.
        run: The run, where there are several.
        html: The file for the page.
        json: The file for the data; ``-`` prints it.
    """
    from kullback.diagnosis.judge_log import judge_log
    from kullback.logs.read import read_log
    from kullback.reporting.steps import steps_document
    from kullback.reporting.steps_html import steps_page
    from kullback.reporting.steps_text import print_steps

    judged = judge_log(read_log(path, run=run), framework=framework, tokens=tokens)
    found = steps_document(judged)
    deliver(found, html=html, json=json, page=steps_page, show=print_steps)
    return found
