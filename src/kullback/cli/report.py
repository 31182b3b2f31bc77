"""``kullback report``: read rollout dumps, say what they show."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from kullback.columns import Columns
    from kullback.dumps import Dump
    from kullback.question import Question

# What the bundled rollouts have to show beside the default questions.
DEMO_QUESTIONS = ("KL(strong||reference) ~ rollout", "KL(rescored||reference)")


class FailOn(StrEnum):
    """The least severity of a finding that makes the command exit with 1."""

    warning = "warning"
    error = "error"


def report(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES", help="Rollout dumps: Parquet or JSONL files, folders or globs."
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Use the bundled rollouts of SmolLM2-135M.")
    ] = False,
    question: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="Ask this too: 'KL(P||Q) ~ SAMPLER per sequence'; may be repeated."
        ),
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="ROLE=COLUMN", help="Read this column as this role; may be repeated."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page to this file.")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the JSON to this file; '-' prints it.")
    ] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="Exit with 1 if a finding is this severe.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first damaged row.")
    ] = False,
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Threads; the numbers do not change.")
    ] = 1,
) -> None:
    """Report every KL of a dump, with its interval and what is wrong with it.

    Asked is the sampler against every other role, and current against reference.

    \b
    Examples:
      kullback report --demo
      kullback report rollouts/*.parquet --html report.html
      kullback report run.jsonl --map reference=ref_lp
      kullback report run.jsonl --question 'KL(current||reference) per sequence'

    Exit status: 0 whatever was found, 1 if --fail-on says so, 2 if the input cannot be read.
    """
    if bool(files) == demo:
        _fail("name the files to read, or give --demo for the bundled rollouts")
    try:
        found = _report(files or [], demo, question or [], map_ or [], strict=strict, jobs=jobs)
        _deliver(found, html, json)
    except (ValueError, OSError) as error:
        _fail(str(error))
    severities = {one["severity"] for one in found["findings"]}
    grave = {"error"} if fail_on is FailOn.error else {"error", "warning"}
    if fail_on and severities & grave:
        raise typer.Exit(1)


def _report(
    files: list[str], demo: bool, questions: list[str], maps: list[str], *, strict: bool, jobs: int
) -> dict[str, Any]:
    from kullback.dumps import demo_path, read
    from kullback.estimation.summary import summarize
    from kullback.question import Question, default_questions
    from kullback.reporting.document import document, source_of

    named = dict(_pair(one) for one in maps)
    dump = read(demo_path() if demo else files, map=named, strict=strict)
    asked: list[Question] = list(default_questions(dump.roles, dump.sampler))
    asked += [Question.parse(text) for text in (*questions, *(DEMO_QUESTIONS if demo else ()))]
    with _progress(dump) as on_batch:
        summary = summarize(
            dump, questions=list(dict.fromkeys(asked)), jobs=jobs, on_batch=on_batch
        )
    return document(summary, source_of(dump))


def _pair(text: str) -> tuple[str, str]:
    role, equals, column = text.partition("=")
    if not (role and equals and column):
        raise ValueError(f"--map {text!r}: write role=column, as in --map current=my_log_probs")
    return role, column


@contextmanager
def _progress(dump: Dump) -> Iterator[Callable[[Columns], None] | None]:
    """A bar on the error stream while a long dump is read; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=dump.rows)
        yield lambda columns: bar.advance(task, len(columns.lengths))


def _deliver(report: dict[str, Any], html: Path | None, json: str | None) -> None:
    from kullback.reporting.write import as_json, write_html, write_json

    if html:
        write_html(report, html)
    if json == "-":
        sys.stdout.write(as_json(report))
        return
    if json:
        write_json(report, Path(json))
    from rich.console import Console

    from kullback.reporting.text import print_report

    print_report(report, Console(highlight=False))
    for path in (html, json):
        if path:
            sys.stdout.write(f"Wrote {path}\n")


def _fail(sentence: str) -> NoReturn:
    sys.stderr.write(f"kullback: {sentence}\n")
    raise typer.Exit(2)
