"""The comparison in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kullback.dumps.errors import printable
from kullback.reporting.comparison_words import (
    HEADS,
    about_the_pairing,
    caption,
    headline,
    in_common,
    not_compared,
    row,
    sides,
    whose,
)
from kullback.reporting.text import (
    TRUST_STYLES,
    WIDE,
    broken,
    guesses,
    print_finding,
    room_beside,
)
from kullback.reporting.words import trust

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Narrow, the interval says whether it is a change, and k3 and exact are in the page and the JSON.
NARROW = ("question", "A", "B", "B − A", "interval", "trust")


def print_comparison(made: dict[str, Any], console: Console) -> None:
    """Print a comparison: the headline, what was found on one side alone, the numbers.

    Args:
        made: What ``comparison`` made.
        console: Where to; its width decides how many columns the table has.
    """
    from rich.text import Text

    for line in sides(made):
        console.print(Text(printable(line), style="dim"))
    console.print(Text(headline(made), style="bold"))
    if said := about_the_pairing(made):
        console.print(Text(said))
    console.print(Text(trust(made), style=TRUST_STYLES[made["headline"]["trust"]]))
    for finding in made["findings"]:
        if finding["alone"]:
            print_finding(finding, console, of=f"{whose(finding)}: ")
    console.print()
    if said := in_common(made):
        console.print(Text(said))
        console.print()
    console.print(_numbers(made, console.width))
    for line in [*not_compared(made), *_guesses(made)]:
        console.print(Text(printable(line)))  # a column's name must not move the cursor


def _numbers(made: dict[str, Any], width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    heads = HEADS if width >= WIDE else NARROW
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(heads[0], overflow="fold")
    for name in heads[1:-1]:  # a number is folded, if it must be, and never cut short
        table.add_column(name, justify="right", overflow="fold")
    table.add_column(heads[-1])
    rows = [dict(zip(HEADS, row(one), strict=True)) for one in made["questions"]]
    room = room_beside([(name, *(one[name] for one in rows)) for name in heads[1:]], width)
    for one, cells in zip(made["questions"], rows, strict=True):
        question, *others, trusted = (cells[name] for name in heads)
        style = TRUST_STYLES[one["trust"]["verdict"]]
        if heads is NARROW:
            question = broken(question, room)
        table.add_row(question, *others, Text(trusted, style=style))
    table.caption = caption(made)
    table.caption_justify = "left"
    return table


def _guesses(made: dict[str, Any]) -> list[str]:
    """What was guessed on either side; what was guessed on both alike, once."""
    ours, theirs = (guesses(made[side]["source"]) for side in ("a", "b"))
    return [
        *(line if line in theirs else f"A: {line}" for line in ours),
        *(f"B: {line}" for line in theirs if line not in ours),
    ]
