"""``kullback compare``: did a KL change between two dumps, or two steps of one, or is it noise?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kullback.cli import options
from kullback.cli.delivery import deliver
from kullback.cli.failing import fail, one_sentence, require_place
from kullback.cli.reading import columns_by_role, progress

if TYPE_CHECKING:
    from kullback.dumps import Dump
    from kullback.estimation.summary import Summary
    from kullback.question import Question


@click.command(short_help="Did a KL change between two dumps, or two steps?")
@click.argument("dumps", nargs=-1, metavar="A B | FILES --steps I,J")
@click.option("--steps", metavar="I,J", help="Compare step J of one dump with its step I.")
@options.questions
@options.maps
@options.html
@options.json
@options.jobs
def compare(
    dumps: tuple[str, ...],
    steps: str | None,
    questions: tuple[str, ...],
    maps: tuple[str, ...],
    html: str | None,
    json: str | None,
    jobs: int,
) -> None:
    """Tell whether a KL changed between two dumps, or is noise.

    A and B are a file, a folder or a quoted pattern each. Told is B - A of every KL that both
    answer, with an interval in which the prompts that both have are paired, and what was found on
    one side alone.

    \b
    Examples:
      kullback compare before.parquet after.parquet
      kullback compare run-a/ 'run-b/*.jsonl' --html change.html
      kullback compare rollouts/*.parquet --steps 3,7
      kullback compare a.parquet b.parquet --question 'KL(old||reference) per sequence'

    Exit status: 0 whatever changed, 2 if the input cannot be read or compared.
    """
    from kullback.question import Question
    from kullback.reporting.comparison import comparison
    from kullback.reporting.comparison_html import comparison_page
    from kullback.reporting.comparison_text import print_comparison

    if steps is None and len(dumps) != 2:
        fail(
            f"name two dumps, not {len(dumps)}: a file, a folder or a quoted pattern each; or one "
            "dump and two of its steps, as in --steps 3,7"
        )
    if not dumps:
        fail("name the files of which --steps are to be compared")
    with one_sentence():
        named = columns_by_role(maps)
        asked = [Question.parse(text) for text in questions]
        pair = None if steps is None else _two(steps)
        for path in (html, json if json != "-" else None):
            require_place(path)
        if pair is None:
            a, b, sources = _two_dumps(dumps, asked, named, jobs)
            names = dumps
        else:
            a, b, sources = _two_steps(dumps, pair, asked, named, jobs)
            names = tuple(f"step {step} of {_spoken(dumps)}" for step in pair)
        made = comparison(a, b, sources, names=names)
        deliver(made, html=html, json=json, page=comparison_page, show=print_comparison)


def _two(steps: str) -> tuple[str, str]:
    """The two steps, as --steps gives them."""
    first, comma, second = (part.strip() for part in steps.partition(","))
    if not (first and comma and second) or "," in second:
        raise ValueError(f"--steps {steps!r}: write two steps, as in --steps 3,7")
    if first == second:
        raise ValueError(f"--steps {steps!r}: a step does not differ from itself; name two")
    return first, second


def _spoken(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} files"


Sides = tuple["Summary", "Summary", list[dict[str, Any]]]


def _two_dumps(
    files: Sequence[str], asked: Sequence[Question], named: dict[str, str], jobs: int
) -> Sides:
    from kullback.dumps import read
    from kullback.reporting.document import source_of

    opened = [read(name, map=named) for name in files]
    a, b = (_summary(name, dump, asked, jobs) for name, dump in zip(files, opened, strict=True))
    return a, b, [source_of(dump) for dump in opened]


def _summary(name: str, dump: Dump, asked: Sequence[Question], jobs: int) -> Summary:
    from kullback.estimation.summary import summarize

    questions = _questions(dump, asked, name)
    with progress(dump) as on_batch:
        return summarize(dump, questions=questions, jobs=jobs, on_batch=on_batch)


def _questions(dump: Dump, asked: Sequence[Question], name: str) -> list[Question]:
    from kullback.question import default_questions

    absent = [(q, role) for q in asked for role in q.roles if role not in dump.roles]
    for question, role in absent:
        there = ", ".join(dump.roles)
        raise ValueError(
            f"{name}: {question} needs log-probs of {role}; there are those of {there}"
        )
    return list(dict.fromkeys((*default_questions(dump.roles, dump.sampler.role), *asked)))


def _two_steps(
    files: Sequence[str],
    steps: tuple[str, str],
    asked: Sequence[Question],
    named: dict[str, str],
    jobs: int,
) -> Sides:
    from kullback.dumps import read
    from kullback.estimation.apart import summarize_steps
    from kullback.reporting.document import source_of

    dump = read(files, map=named)
    questions = _questions(dump, asked, _spoken(files))
    with progress(dump) as on_batch:
        a, b = summarize_steps(dump, steps, questions=questions, jobs=jobs, on_batch=on_batch)
    return a, b, [source_of(dump)] * 2
