"""``kullback report``: read rollout dumps, say what they show."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from kullback.columns import Columns
    from kullback.dumps import Dump
    from kullback.question import Question

# What the bundled rollouts have to show beside the default questions.
DEMO_QUESTIONS = ("KL(strong||reference) ~ rollout", "KL(rescored||reference)")


@click.command()
@click.argument("files", nargs=-1)
@click.option("--demo", is_flag=True, help="Use the bundled rollouts of SmolLM2-135M.")
@click.option(
    "--question",
    "questions",
    multiple=True,
    metavar="TEXT",
    help="Ask this too: 'KL(P||Q) ~ SAMPLER per sequence'; may be repeated.",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="ROLE=COLUMN",
    help="Read this column as this role, or as mask, tokens, …; may be repeated.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="AXIS,…",
    help="Split each KL by position, step, staleness, length or any column; may be repeated.",
)
@click.option("--html", metavar="FILE", help="Write the page to this file.")
@click.option("--json", metavar="FILE", help="Write the JSON to this file; '-' prints it.")
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "error"]),
    help="Exit with 1 if a finding is this severe.",
)
@click.option("--strict", is_flag=True, help="Stop at the first damaged row.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Threads; the numbers do not change.",
)
def report(
    files: tuple[str, ...],
    demo: bool,
    questions: tuple[str, ...],
    maps: tuple[str, ...],
    by: tuple[str, ...],
    html: str | None,
    json: str | None,
    fail_on: str | None,
    strict: bool,
    jobs: int,
) -> None:
    """Report every KL of a dump, with its interval and what is wrong with it.

    FILES are rollout dumps (Parquet, Arrow, JSONL or NPZ), folders or patterns. Asked for is the KL
    of the sampler against every other role, and of the policy against the reference.

    \b
    Examples:
      kullback report --demo
      kullback report rollouts/*.parquet --html report.html
      kullback report run.jsonl --map reference=ref_lp
      kullback report run.jsonl --by step,position
      kullback report run.jsonl --question 'KL(current||reference) ~ rollout per sequence'

    Exit status: 0 whatever was found, 1 if --fail-on says so, 2 if the input cannot be read.
    """
    from kullback.question import Question

    if bool(files) == demo:
        _fail("name the files to read, or give --demo for the bundled rollouts")
    if demo and (maps or strict):
        _fail("--map and --strict are for files: the columns of --demo are known")
    try:
        named = _named(maps)
        asked = [Question.parse(text) for text in questions]
        axes = _axes(by)
        for path in (html, json if json != "-" else None):
            _require_place(path)
        if demo:
            found = demo_report(asked, by=axes, jobs=jobs)
        else:
            dump = _opened(files, axes, map=named, strict=strict)
            found = _report(dump, asked, by=axes, jobs=jobs)
        _deliver(found, html, json, [str(question) for question in asked])
    except ValueError as error:
        _fail(str(error))
    except MemoryError:
        _fail("there is not enough memory for a chunk of this dump: 2^17 tokens, or one longer row")
    except BrokenPipeError:  # whoever read the output has read enough; click ends quietly
        raise
    except OSError as error:
        _fail(f"{error.filename or 'the output'} cannot be written: {error.strerror or error}")
    if fail_on and _is_grave(found, fail_on):
        sys.exit(1)


def demo_report(
    questions: Iterable[Question] = (), *, by: Sequence[str] = (), jobs: int = 1
) -> dict[str, Any]:
    """The report of the bundled rollouts."""
    from kullback.dumps import demo_path
    from kullback.question import Question

    more = [*questions, *map(Question.parse, DEMO_QUESTIONS)]
    return _report(_opened(demo_path(), by), more, by=by, jobs=jobs)


def _opened(files: Any, by: Sequence[str], **how: Any) -> Dump:
    """The dump, with the columns that it is to be split by as labels."""
    from kullback.dumps import read
    from kullback.estimation.axes import BUILT_IN

    dump = read(files, **how)
    more = [axis for axis in by if axis not in (*BUILT_IN, *dump.labels)]
    derived = {"step", "versions"} <= {guess.role for guess in dump.columns}
    if "staleness" in by and "staleness" in dump.unused and not derived:
        more.append("staleness")
    return read(files, labels=more, **how) if more else dump


def _report(
    dump: Dump, questions: Iterable[Question], *, by: Sequence[str], jobs: int
) -> dict[str, Any]:
    from kullback.estimation.summary import summarize
    from kullback.question import default_questions
    from kullback.reporting.document import document, source_of

    asked = dict.fromkeys((*default_questions(dump.roles, dump.sampler.role), *questions))
    with _progress(dump) as on_batch:
        summary = summarize(dump, questions=list(asked), by=by, jobs=jobs, on_batch=on_batch)
    return document(summary, source_of(dump))


def _is_grave(report: dict[str, Any], fail_on: str) -> bool:
    """Whether a finding is as severe as that, or the headline has no number to act on."""
    severities = {one["severity"] for one in report["findings"]}
    head = report["headline"]
    if head["estimate"]["mean"] is None:
        severities.add("error")
    elif head["trust"] == "no":
        severities.add("warning")
    return bool(severities & ({"error"} if fail_on == "error" else {"error", "warning"}))


def _require_place(path: str | None) -> None:
    """Refuse a file that cannot be written before anything is computed for it."""
    if path is None:
        return
    target = Path(path)
    if target.is_dir() or not path:
        raise ValueError(f"{path!r} is no file name to write a report to")
    if not target.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {target.parent}")


def _named(maps: Iterable[str]) -> dict[str, str]:
    """The column of each role, as --map gives them."""
    named: dict[str, str] = {}
    for text in maps:
        role, equals, column = text.partition("=")
        if not (role and equals and column):
            raise ValueError(f"--map {text!r}: write role=column, as in --map current=my_log_probs")
        if named.setdefault(role, column) != column:
            raise ValueError(f"--map gives {role} two columns: {named[role]} and {column}")
    return named


def _axes(by: Iterable[str]) -> tuple[str, ...]:
    """The axes, as --by gives them: several at once, apart by commas, or one each."""
    axes = dict.fromkeys(axis.strip() for text in by for axis in text.split(","))
    if "" in axes:
        raise ValueError("--by: write the names of axes, as in --by step,position")
    return tuple(axes)


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


def _deliver(
    report: dict[str, Any], html: str | None, json: str | None, asked: Collection[str]
) -> None:
    from kullback.reporting.write import as_json, write_html, write_json

    if html:
        write_html(report, Path(html))
    if json == "-":
        sys.stdout.write(as_json(report))
        return
    if json:
        write_json(report, Path(json))
    from rich.console import Console

    from kullback.reporting.text import print_report

    print_report(report, Console(highlight=False), asked=asked)
    for path in (html, json):
        if path:
            sys.stdout.write(f"Wrote {path}\n")


def _fail(sentence: str) -> NoReturn:
    click.echo(f"kullback: {sentence}", err=True)
    sys.exit(2)
