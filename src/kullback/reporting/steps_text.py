"""A judged step log in a terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kullback.dumps.errors import printable
from kullback.reporting.text import print_finding
from kullback.reporting.words import number, percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

HEADS = ("series", "first", "last", "level", "noise", "below 0")
CHECKS = 12  # checks that cannot be made, at most, of which each is said


def print_steps(report: dict[str, Any], console: Console) -> None:
    """Print what a log shows: the headline, findings, each series, what was checked.

    Args:
        report: What ``steps_document`` made.
        console: Where to.
    """
    from rich.text import Text

    console.print(Text(printable(what_was_read(report)), style="dim"))
    console.print(Text(report["headline"], style="bold"))
    for finding in report["findings"]:
        print_finding(finding, console)
    if report["findings"]:
        code = report["findings"][0]["code"]
        console.print(Text(f"\nWhat a code means: kullback explain {code}", style="dim"))
    if report["series"]:
        console.print()
        console.print(_table(report))
        console.print()
        for one in report["series"]:
            console.print(Text(printable(f"{one['name']} {is_or_may_be(one)} {one['is']}.")))
        if not report["framework"]:
            console.print(Text("Whose names are these? --framework NAME reads them as its own."))
    for line in [*_tokens(report), *_checks(report), *report["source"]["notes"]]:
        console.print(Text(printable(line)))


def is_or_may_be(series: dict[str, Any]) -> str:
    """How sure it is what a series is."""
    meanings = {(one["method"], str(one["question"])) for one in series["can_be"]}
    return "may be" if len(meanings) > 1 else "is"


def what_was_read(report: dict[str, Any]) -> str:
    """The file, its format and the run, in one line."""
    source = report["source"]
    run = f", run {source['run']}" if source["run"] not in ("", ".") else ""
    framework = f", read as {report['framework']}'s" if report["framework"] else ""
    framework += " (a guess by its names)" * report["framework_guessed"]
    return f"{source['path']}: {source['format']}{run}, {source['names']} series{framework}"


def series_row(one: dict[str, Any]) -> tuple[str, ...]:
    """A series under the heads ``HEADS``."""
    held = (one[key] for key in ("first", "last", "level", "noise"))
    return one["name"], *map(number, held), percent(one["negative_share"], 0)


def _table(report: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(HEADS[0], overflow="fold")
    for head in HEADS[1:]:
        table.add_column(head, justify="right", overflow="fold")
    for one in report["series"]:
        name, *rest = series_row(one)
        table.add_row(printable(name), *rest)
    table.caption = (
        "Level: median of the running median. Noise: robust standard deviation of a step about it."
    )
    table.caption_justify = "left"
    return table


def _tokens(report: dict[str, Any]) -> list[str]:
    tokens = report["tokens"]
    if tokens is None:
        return ["", "Tokens of a step: not logged under a name that is known (--tokens N)"]
    prompts = ", with those of prompts" if tokens["with_prompts"] else ""
    return ["", f"Tokens of a step: about {tokens['per_step']:.0f}, {tokens['how']}{prompts}"]


def _checks(report: dict[str, Any]) -> list[str]:
    passed = Counter(one["code"] for one in report["checks"] if one["status"] == "passed")
    told = ", ".join(f"{code} ({count})" for code, count in passed.items())
    lines = [f"Passed: {told}"] if passed else []
    open_ones = [one for one in report["checks"] if one["status"] == "not-possible"]
    lines += [
        f"Cannot be told ({one['code']} of {one['subject']}): {one['reason']}"
        for one in open_ones[:CHECKS]
    ]
    more = len(open_ones) - CHECKS
    return lines + [f"and {more} more that cannot be told (--json)"] * (more > 0)
