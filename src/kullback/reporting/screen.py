"""A report that is watched: as much of it as one screen holds, or a line for each change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kullback.dumps.errors import printable
from kullback.reporting.along import cell_heads, cell_rows
from kullback.reporting.text import STYLES, opening_style
from kullback.reporting.words import counted, headline, opening, what_was_read

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

CELLS = 10  # the last cells of the headline's question that are shown, at most
NOTES = 4  # waiting files, and things that happened, that are shown, at most
FINDINGS = 3  # findings that have room before the cells do


def one_line(report: dict[str, Any], before: Iterable[str]) -> str:
    """The report in one line without the time: rows, tokens, headline, and what findings changed.

    Args:
        report: What ``document`` made.
        before: The codes of the findings that were there before.
    """
    rows, tokens = report["source"]["rows"], report["questions"][0]["counts"]["tokens"]
    said = [f"{counted(rows, 'row')}, {counted(tokens, 'token')}: {headline(report)}"]
    now = {one["code"]: one["severity"] for one in report["findings"]}
    before = set(before)
    new = [f"{severity} {code}" for code, severity in now.items() if code not in before]
    gone = sorted(before - now.keys())
    said += [f"New: {', '.join(new)}."] * bool(new)
    said += [f"No longer: {', '.join(gone)}."] * bool(gone)
    return " ".join(said)


def waiting_lines(waiting: Mapping[str, str]) -> list[str]:
    """A line for each file that waits, one on all others if they are many."""
    lines = [f"Waits for {name}: {why}" for name, why in waiting.items()]
    return _few(lines, NOTES, "files wait")


def screen(
    report: dict[str, Any] | None, notes: Sequence[str], foot: str, console: Console
) -> list[Text]:
    """The lines of a screen: headline, trust, findings, the last cells, notes and a foot.

    What does not fit is counted, so that there are never more lines than the console has.

    Args:
        report: What ``document`` made; None while there is nothing to report.
        notes: What happened and what is waited for.
        foot: The last line.
        console: Its size is the size of the screen.
    """
    below = [_cropped(note, console, "yellow") for note in notes]
    below.append(_cropped(foot, console, "dim"))
    most = max(console.height - 1, 1)  # one line higher, and a terminal scrolls
    if report is None:
        return below[-most:]
    above = _wrapped(what_was_read(report), "dim", console)
    for kind, line in opening(report):
        above += _wrapped(line, opening_style(report, kind), console)
    room = most - len(above) - len(below)
    cells = _cells(report, console)
    kept = max(FINDINGS + 1, room - len(cells))
    findings = _findings(report, min(kept, room), console)
    lines = [*above, *findings, *_last(cells, room - len(findings)), *below]
    return lines if len(lines) <= most else [*lines[: most - 1], lines[-1]]


def _findings(report: dict[str, Any], room: int, console: Console) -> list[Text]:
    from rich.text import Text

    if not report["findings"] or room < 2:
        return []
    width = max(len(one["code"]) for one in report["findings"])
    lines = [Text()]
    for one in report["findings"]:
        line = Text.assemble(
            (f"{one['severity']:7}", STYLES[one["severity"]]),
            "  ",
            (f"{one['code']:{width}}", "bold"),
            f"  {printable(one['claim'])}",
        )
        lines.append(line)
    lines = lines if len(lines) <= room else [
        *lines[: room - 1], Text(f"and {len(lines) - room + 1} more findings", style="dim")
    ]  # fmt: skip
    for line in lines:
        line.truncate(console.width, overflow="ellipsis")
    return lines


def _cells(report: dict[str, Any], console: Console) -> list[Text]:
    """The headline's question by step, or else by the first axis that tells two cells apart."""
    text = report["headline"]["question"]
    [one] = (one for one in report["questions"] if one["question"]["text"] == text)
    axes = [axis for axis, cells in one["by"].items() if len(cells) > 1]
    if not axes:
        return []
    axis = "step" if "step" in axes else axes[0]
    rows = [cell_heads(one, axis), *cell_rows(one, axis)[-CELLS:]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{v:>{w}}" for v, w in zip(row, widths, strict=True)) for row in rows]
    head, *others = lines
    first = [_cropped("", console, ""), _cropped(head, console, "bold")]
    return first + [_cropped(line, console, "") for line in others]


def _last(cells: list[Text], room: int) -> list[Text]:
    """The head of a table and as many of its last lines as fit; nothing where none does."""
    return [*cells[:2], *cells[2:][-(room - 2) :]] if room > 2 else []


def _wrapped(text: str, style: str, console: Console) -> list[Text]:
    from rich.text import Text

    return list(Text(printable(text), style=style).wrap(console, console.width))


def _cropped(text: str, console: Console, style: str) -> Text:
    from rich.text import Text

    line = Text(printable(text), style=style)
    line.truncate(console.width, overflow="ellipsis")
    return line


def _few(lines: list[str], most: int, noun: str) -> list[str]:
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"and {len(lines) - most + 1} more {noun}"]
