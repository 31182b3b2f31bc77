"""The self-test in a terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kullback.diagnosis.finding import CODES
from kullback.dumps.errors import printable
from kullback.selftest.detectors import STANDS_IN, WRONG
from kullback.selftest.line import VERDICTS
from kullback.selftest.run import FAULTS, Selftest

if TYPE_CHECKING:
    from rich.console import Console

VERDICT = max(map(len, VERDICTS))
STYLES = {"passed": "green", "failed": "bold red", "not-reached": "dim"}


def print_selftest(made: Selftest, console: Console) -> None:
    """Print every line, and what they come to.

    Args:
        made: What was checked.
        console: Where to; its width decides where lines break.
    """
    from rich.table import Table
    from rich.text import Text

    ran_on = ", ".join(f"{name} {said}" for name, said in made.versions.items())
    console.print(Text(printable(ran_on), style="dim"))
    for title, lines in made.parts.items():
        console.print(Text(f"\n{title}", style="bold cyan"))
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(min_width=VERDICT)
        table.add_column(min_width=max(len(line.name) for line in lines))
        table.add_column(overflow="fold")
        for line in lines:
            verdict = Text(line.verdict.replace("-", " "), style=STYLES[line.verdict])
            table.add_row(verdict, Text(line.name), Text(printable(line.says)))
        console.print(table)
        if title == FAULTS:
            console.print(Text(_legend(made), style="dim"))
    style = "bold green" if made.passed else "bold red"
    console.print(Text(f"\n{made.verdict()}", style=style))


def _legend(made: Selftest) -> str:
    """How to read the table of faults, and the accusing codes that none of them was told as."""
    told = Counter[str]()
    for line in made.parts[FAULTS]:
        told.update(line.numbers.get("told", {}))
    accusing = [code for code, known in CODES.items() if known.accuses and known.of == "dump"]
    silent = [code for code in accusing if not told[code]]
    said = (
        "In how many reports a fault was found, and how often each code was told: its own, one "
        f"that may stand for it ({STANDS_IN}), one that accuses of another fault ({WRONG})."
    )
    return said + (f" Told of none: {', '.join(silent)}." if silent else "")
