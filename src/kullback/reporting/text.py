"""The report in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from kullback.dumps.errors import printable
from kullback.explaining.explanation import LABEL, Explanation
from kullback.reporting import policies, who_sampled
from kullback.reporting.along import cell_caption, cell_heads, cell_rows, left_out
from kullback.reporting.words import (
    NUMBERS,
    TRUST,
    advice,
    caption,
    clamped,
    forgotten_weight,
    headline,
    number,
    numbers,
    percent,
    trust,
    what_was_read,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

T = TypeVar("T", bound=Hashable)

WIDE = 120  # columns from which the table of numbers also shows the sampler and the weights
OTHERS = 60  # columns that the numbers beside a question take in a narrower one
STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
TRUST_STYLES = {"yes": "green", "with-care": "yellow", "no": "bold red"}


def print_report(
    report: dict[str, Any],
    console: Console,
    *,
    asked: Collection[str] = (),
    by: Collection[str] = (),
) -> None:
    """Print a report: the headline, what was found, the numbers, what was checked.

    Args:
        report: What ``document`` made.
        console: Where to; its width decides how many columns the table has.
        asked: The questions of which, beside that of the headline, the tables by axis are shown.
        by: The axes of which tables are shown; the others are named.
    """
    from rich.text import Text

    console.print(Text(what_was_read(report), style="dim"))
    console.print(Text(headline(report), style="bold"))
    if said := forgotten_weight(report):
        console.print(Text(said))
    console.print(Text(trust(report), style=TRUST_STYLES[report["headline"]["trust"]]))
    for finding in report["findings"]:
        print_finding(finding, console)
    if report["findings"]:
        code = report["findings"][0]["code"]
        console.print(Text(f"\nWhat a code means: kullback explain {code}", style="dim"))
    console.print()
    console.print(_numbers(report, console.width))
    for one in report["questions"]:
        if one["question"]["text"] in (report["headline"]["question"], *asked):
            for axis in by:
                console.print()
                console.print(_cells(one, axis))
    _print_policies(report, console)
    console.print()
    console.print(Text(printable(_advice(report))))
    if said := left_out(report, asked, by):
        console.print(Text(said, style="dim"))
    for line in [*who_sampled.lines(report), *_checks(report), *guesses(report["source"])]:
        console.print(Text(printable(line)))  # a column's name must not move the cursor


def _print_policies(report: dict[str, Any], console: Console) -> None:
    if report["policies"]:
        console.print()
        console.print(policies.printed(report))
        for line in policies.lines(report):
            console.print(line, highlight=False, markup=False)


def print_finding(finding: dict[str, Any], console: Console, *, of: str = "") -> None:
    """Print one finding; ``of`` says whose it is, where there are several."""
    from rich.padding import Padding
    from rich.text import Text

    console.print()
    style = STYLES[finding["severity"]]
    console.print(Text.assemble(of, (finding["severity"], style), "  ", (finding["code"], "bold")))
    for word, key in (("", "claim"), ("Cost: ", "cost"), ("Do: ", "advice")):
        console.print(Padding(Text(printable(word + finding[key])), (0, 0, 0, 2)))
    if finding["severity"] != "note" and finding["questions"]:
        spoiled = Text(f"Spoils: {', '.join(finding['questions'])}", style="dim")
        console.print(Padding(spoiled, (0, 0, 0, 2)))


def print_explanation(said: Explanation, console: Console) -> None:
    """Print an explanation: its lines as they are, titles and labels set apart by style.

    Args:
        said: What ``explain`` made.
        console: Where to; its width decides where lines break.
    """
    from rich.text import Text

    lines = said.lines(console.width)
    title, labels = lines.index(""), {section.label for section in said.sections}
    for i, line in enumerate(lines):
        text = Text(line)
        if i < title:
            text.stylize("bold")
        elif not line.startswith(" "):
            text.stylize("cyan", 0, len(line) if line in labels else LABEL)
        console.print(text, soft_wrap=True)


def _advice(report: dict[str, Any]) -> str:
    head = report["headline"]["question"]
    return " ".join(
        line
        for one in report["questions"]
        if one["question"]["text"] == head
        for line in [*advice(one), *clamped(one)]
    )


def _numbers(report: dict[str, Any], width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    wide, room = width >= WIDE, width - OTHERS

    table = Table(box=None, pad_edge=False, title_justify="left", header_style="bold")
    exact = any("exact" in one["estimates"] for one in report["questions"])
    shown = NUMBERS if exact else NUMBERS[:-1]
    table.add_column(shown[0], overflow="fold")
    for name in shown[1:]:  # a number is folded, if it must be, and never cut short
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("trust")
    if wide:
        for name in ("missing mass", "weights left", "p99 of k3", "sampler"):
            table.add_column(name, justify="right", no_wrap=True)
    for one in report["questions"]:
        verdict = one["trust"]["verdict"]
        text, *values = numbers(one)[: len(shown)]
        cells: list[str | Text] = [
            text if wide else _broken(text, room),
            *values,
            Text(TRUST[verdict], style=TRUST_STYLES[verdict]),
        ]
        if wide:
            check, weights = one["sampler_check"], one["weights"]
            cells += [
                f"{number(check['missing_mass'], 2)} ± {number(check['standard_error'], 2)}",
                "–" if weights["of"] == "q/s" else percent(weights["ess_fraction"], 0),
                number(one["distribution"]["k3"]["p99"]),
                check["verdict"],
            ]
        table.add_row(*cells)
    table.caption = caption(report)
    table.caption_justify = "left"
    return table


def _broken(question: str, room: int) -> str:
    """A question over lines of a narrow terminal, broken where one would pause."""
    lines = question.replace(" ~ ", "\n  ~ ").replace(" per ", "\n  per ").split("\n")
    return "\n".join(line.replace("||", "\n  ||") if len(line) > room else line for line in lines)


def _cells(one: dict[str, Any], axis: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    first, *others = cell_heads(one, axis)
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", overflow="fold")
    for row in cell_rows(one, axis):
        table.add_row(*row)
    table.title = f"{one['question']['text']} by {axis}"
    table.title_style = "bold"
    table.caption = cell_caption(one, axis)
    table.caption_justify = "left"
    return table


def _checks(report: dict[str, Any]) -> list[str]:
    passed = Counter(one["code"] for one in report["checks"] if one["status"] == "passed")
    lines = []
    if passed:
        told = ", ".join(f"{code} ({count})" for code, count in passed.items())
        lines += ["", f"Passed: {told}"]
    open_ones = [one for one in report["checks"] if one["status"] == "not-possible"]
    told = _by_reason((one["question"], (one["code"], one["reason"])) for one in open_ones)
    lines += [f"Cannot be told ({code} of {of}): {reason}" for (code, reason), of in told.items()]
    return lines


def _by_reason(told: Iterable[tuple[str, T]]) -> dict[T, str]:
    """What holds for several, said once: the names by what is said of them."""
    names: dict[T, list[str]] = {}
    for name, reason in told:
        names.setdefault(reason, []).append(name)
    return {reason: ", ".join(those) for reason, those in names.items()}


def guesses(source: dict[str, Any]) -> list[str]:
    """What was guessed and what was left out, each with the reason; canonical names are neither."""
    lines = [
        f"Read {one['column']} as {one['role']}: {one['reason']}"
        for one in source.get("columns", [])
        if one["how"] != "canonical"
    ]
    if lines or source.get("sampler", "rollout") != "rollout":
        lines.append(f"Took {source['sampler']} as the sampler: {source['sampler_reason']}")
    unused = _by_reason(source.get("unused", {}).items())
    lines += [f"Did not read {names}: {why}" for why, names in unused.items()]
    return lines + [
        f"Left out {one['file']}, {one['place']}: {one['reason']}"
        for one in source.get("damaged", [])
    ]
