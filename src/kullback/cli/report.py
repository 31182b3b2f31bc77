"""``kullback report``: read rollout dumps, say what they show."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kullback.cli import options
from kullback.cli.delivery import deliver
from kullback.cli.failing import fail, grave_findings, is_grave, one_sentence, require_place
from kullback.cli.reading import axes_of, columns_by_role, opened, progress
from kullback.cli.step_report import is_log, report_log, why_no_log

if TYPE_CHECKING:
    from kullback.dumps import Dump
    from kullback.question import Question

# What the bundled rollouts have to show beside the default questions.
DEMO_QUESTIONS = ("KL(strong||reference) ~ rollout", "KL(rescored||reference)")


@click.command(short_help="Every KL of a dump, and what is wrong with it.")
@click.argument("files", nargs=-1)
@click.option("--demo", is_flag=True, help="Use the bundled rollouts of SmolLM2-135M.")
@options.questions
@options.maps
@options.by
@click.option(
    "--policies",
    is_flag=True,
    help="Ask every pair of rollout, old, current and reference, at the sampler's prefixes and at "
    "those of p.",
)
@click.option(
    "--framework", metavar="NAME", help="The trainer that wrote a step log: verl, trl/GRPO, …"
)
@click.option(
    "--tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens that a step's mean is over, where a step log does not say it.",
)
@click.option("--run", metavar="NAME", help="The run of a step log that holds several.")
@options.html
@options.json
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "error"]),
    help="Exit with 1 if a finding is this severe.",
)
@click.option("--strict", is_flag=True, help="Stop at the first damaged row.")
@options.jobs
def report(
    files: tuple[str, ...],
    demo: bool,
    questions: tuple[str, ...],
    maps: tuple[str, ...],
    by: tuple[str, ...],
    policies: bool,
    framework: str | None,
    tokens: int | None,
    run: str | None,
    html: str | None,
    json: str | None,
    fail_on: str | None,
    strict: bool,
    jobs: int,
) -> None:
    """Report every KL of a dump, with its interval and what is wrong with it; or of a step log.

    FILES are rollout dumps (Parquet, Arrow, JSONL or NPZ), folders or patterns. Asked for is the KL
    of the sampler against every other role, and of the policy against the reference.

    Or it is one step log, which has a mean for each step: a folder or file of TensorBoard, W&B
    (offline runs, exports), MLflow or trackio, JSON lines, CSV, or trainer_state.json. Its KL
    series are named and judged: sign, scale, units, noise, jumps.

    \b
    Examples:
      kullback report --demo
      kullback report rollouts/*.parquet --html report.html
      kullback report run.jsonl --map reference=ref_lp
      kullback report run.jsonl --by step,position
      kullback report run.jsonl --policies
      kullback report run.jsonl --question 'KL(current||reference) ~ rollout per sequence'
      kullback report wandb/offline-run-1 --framework verl --tokens 65536

    Exit status: 0 whatever was found, 1 if --fail-on says so, 2 if the input cannot be read.
    """
    from kullback.question import Question
    from kullback.reporting.html import page
    from kullback.reporting.text import print_report

    if bool(files) == demo:
        fail("name the files to read, or give --demo for the bundled rollouts")
    if demo and (maps or strict):
        fail("--map and --strict are for files: the columns of --demo are known")
    with one_sentence():
        named = columns_by_role(maps)
        asked = [Question.parse(text) for text in questions]
        axes = axes_of(by)
        for path in (html, json if json != "-" else None):
            require_place(path)
        about_log = {"--framework": framework, "--tokens": tokens, "--run": run}
        if not named and is_log(files):  # what is mapped is a dump
            others = {"--question": asked, "--by": axes, "--policies": policies,
                      "--strict": strict}  # fmt: skip
            _require_none(others, f"of dumps, and {files[0]} is a step log")
            said = report_log(
                files[0], framework=framework, tokens=tokens, run=run, html=html, json=json
            )
            sys.exit(bool(fail_on and grave_findings(said, fail_on)))
        _require_none(about_log, f"of step logs; {why_no_log(files)}")
        if demo:
            found = demo_report(asked, by=axes, policies=policies, jobs=jobs)
        else:
            dump = opened(files, axes, map=named, strict=strict)
            found = _report(dump, asked, by=axes, policies=policies, jobs=jobs)
        show = partial(print_report, asked=[str(question) for question in asked], by=axes)
        deliver(found, html=html, json=json, page=page, show=show)
    if fail_on and is_grave(found, fail_on):
        sys.exit(1)


def _require_none(options: Mapping[str, Any], why: str) -> None:
    """Refuse options that say nothing of what was given."""
    given = [name for name, value in options.items() if value]
    if given:
        fail(f"{' and '.join(given)} {'is' if len(given) == 1 else 'are'} {why}")


def demo_report(
    questions: Iterable[Question] = (),
    *,
    by: Sequence[str] = (),
    policies: bool = False,
    jobs: int = 1,
) -> dict[str, Any]:
    """The report of the bundled rollouts."""
    from kullback.dumps import demo_path
    from kullback.question import Question

    more = [*questions, *map(Question.parse, DEMO_QUESTIONS)]
    return _report(opened(demo_path(), by), more, by=by, policies=policies, jobs=jobs)


def _report(
    dump: Dump, questions: Iterable[Question], *, by: Sequence[str], policies: bool, jobs: int
) -> dict[str, Any]:
    from kullback.estimation.axes import USUAL
    from kullback.estimation.policies import policy_questions
    from kullback.estimation.summary import summarize
    from kullback.question import default_questions
    from kullback.reporting.document import document, source_of

    sampler = dump.sampler.role
    pairs = policy_questions(dump.roles, sampler) if policies else ()
    asked = dict.fromkeys((*default_questions(dump.roles, sampler), *pairs, *questions))
    with progress(dump) as on_batch:
        summary = summarize(
            dump, questions=list(asked), by=by, also=USUAL, jobs=jobs, on_batch=on_batch
        )
    return document(summary, source_of(dump))
