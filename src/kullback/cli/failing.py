"""How a command fails: one sentence on the error stream, and 2; or 1, where a finding is grave."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click


def fail(sentence: str) -> NoReturn:
    """Say it and exit with 2."""
    click.echo(f"kullback: {sentence}", err=True)
    sys.exit(2)


@contextmanager
def one_sentence() -> Iterator[None]:
    """Whatever goes wrong in the block is said in one sentence, with exit status 2."""
    try:
        yield
    except ValueError as error:
        fail(str(error))
    except MemoryError:
        fail("there is not enough memory for a chunk of this dump: 2^17 tokens, or one longer row")
    except BrokenPipeError:  # whoever read the output has read enough; click ends quietly
        raise
    except OSError as error:
        fail(f"{error.filename or 'the output'} cannot be written: {error.strerror or error}")


def require_place(path: str | None) -> None:
    """Refuse a file that cannot be written before anything is computed for it."""
    if path is None:
        return
    target = Path(path)
    if target.is_dir() or not path:
        raise ValueError(f"{path!r} is no file name to write a report to")
    if not target.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {target.parent}")


def grave_findings(report: dict[str, Any], fail_on: str) -> list[str]:
    """The codes of the findings that are as severe as that."""
    grave = ("error",) if fail_on == "error" else ("error", "warning")
    return [one["code"] for one in report["findings"] if one["severity"] in grave]


def is_grave(report: dict[str, Any], fail_on: str) -> bool:
    """Whether a finding is as severe as that, or the headline has no number to act on."""
    head = report["headline"]
    if head["estimate"]["mean"] is None or (head["trust"] == "no" and fail_on == "warning"):
        return True
    return bool(grave_findings(report, fail_on))
