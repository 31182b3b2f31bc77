"""Experiments in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kullback.reporting.experiment import PRINTED_HEADS, Experiment, Table

if TYPE_CHECKING:
    from rich.console import Console


def print_experiments(made: Sequence[Experiment], console: Console) -> None:
    """Print experiments, one after the other: the answer first, figures by their findings.

    Args:
        made: The experiments.
        console: Where to; its width decides where lines break.
    """
    for place, one in enumerate(made):
        if place:
            console.print()
        _print(one, console)


def _print(one: Experiment, console: Console) -> None:
    from rich.text import Text

    console.print(Text(f"{one.name}, seed {one.seed}, after {one.source}", style="dim"))
    console.print(Text(one.answer, style="bold"))
    for word, said in (("Question", one.question), ("Claim", one.claim), ("Method", one.method)):
        console.print(Text.assemble((f"{word}: ", "cyan"), said))
    for part in one.parts:
        console.print(Text(f"\n{part.title}", style="bold cyan"))
        console.print(Text(part.says))
        for shown in part.shows:
            if isinstance(shown, Table):
                console.print()
                _table(shown.caption, shown.heads, shown.cells(), console)
    console.print(Text("\nEvery number that the document prints", style="bold cyan"))
    console.print(Text(one.verdict()))
    if one.printed:
        _table("", PRINTED_HEADS, [printed.cells() for printed in one.printed], console)
    console.print(Text("\nLimits", style="bold cyan"))
    for limit in one.limits:
        console.print(Text(limit))


def _table(
    caption: str, heads: Sequence[str], cells: Sequence[Sequence[str]], console: Console
) -> None:
    from rich.table import Table as Drawn
    from rich.text import Text

    if caption:
        console.print(Text(caption, style="dim"))
    drawn = Drawn(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, head in enumerate(heads):
        right = place > 0 and any(_is_number(row[place]) for row in cells)
        # A head may break; a number that is cut is another number.
        whole = max(len(row[place]) for row in cells) if right else None
        justify = "right" if right else "left"
        drawn.add_column(head, justify=justify, min_width=whole, overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    console.print(drawn)


def _is_number(shown: str) -> bool:
    try:
        float(shown.replace(",", ""))
    except ValueError:
        return False
    return True
