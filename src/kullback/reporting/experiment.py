"""What an experiment hands to its reader: one result, told by the terminal, the page and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

from kullback import __version__
from kullback.reporting.figures import Figure

SCHEMA = "kullback.experiment/1"
DIGITS = 4  # of a number in a table


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers under heads.

    Args:
        caption: What it shows.
        heads: The head of each column; the first column says what a row is of.
        rows: Words, numbers, and None where there is no number.
    """

    caption: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[str | float | None]]

    def cells(self) -> list[list[str]]:
        """The rows as they are read, numbers in four digits."""
        return [[cell(value) for value in row] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Part:
    """A step of an experiment: what was seen, said in a sentence or two, and what shows it."""

    title: str
    says: str
    shows: tuple[Figure | Table, ...]


@dataclass(frozen=True, slots=True)
class Printed:
    """A number that a document prints, beside ours.

    Args:
        what: What the number is.
        printed: As it stands in the document, digit for digit.
        ours: Ours.
        why: Why the digits differ, where they do; or how the number came about.

    Example:
        >>> Printed("sd of k2 / KL", "1.42", 1.41774).agrees
        True
        >>> Printed("bias of k2 / KL", "0.002", 0.0025).agrees
        False
    """

    what: str
    printed: str
    ours: float
    why: str = ""

    @property
    def agrees(self) -> bool:
        """Whether ours, rounded half up to as many digits, is what is printed."""
        printed = Decimal(self.printed)
        # Twelve decimals hide the last bits of float64, which would decide a tie.
        ours = Decimal(f"{self.ours:.12f}").quantize(printed, rounding=ROUND_HALF_UP)
        return ours == printed

    def cells(self) -> list[str]:
        """What it is, theirs, ours with two digits more, the verdict, and why."""
        shown = max(-int(Decimal(self.printed).as_tuple().exponent), 0) + 2
        verdict = "agrees" if self.agrees else "differs"
        ours = round(self.ours, shown) + 0.0  # without the sign of −0
        return [self.what, self.printed, f"{ours:.{shown}f}", verdict, self.why]


PRINTED_HEADS = ("number", "printed", "ours", "", "remark")


@dataclass(frozen=True, slots=True)
class Experiment:
    """A result that can be read alone.

    Args:
        name: What ``kullback reproduce`` calls it.
        source: Whose experiment it is.
        question: What is asked.
        claim: What the document answers.
        answer: What was found, in one sentence.
        method: How.
        parts: What was seen.
        printed: The numbers that the document prints, beside ours.
        limits: What does not follow from it.
        seed: The seed of what was drawn.
    """

    name: str
    source: str
    question: str
    claim: str
    answer: str
    method: str
    parts: tuple[Part, ...]
    printed: tuple[Printed, ...]
    limits: tuple[str, ...]
    seed: int

    def verdict(self) -> str:
        """How many of the printed numbers are ours.

        Returns:
            A sentence.
        """
        if not self.printed:
            return "The document prints no number on this."
        same, total = sum(one.agrees for one in self.printed), len(self.printed)
        if same == total:
            return f"All {total} printed numbers agree with ours digit for digit."
        rest = "the other one is" if total - same == 1 else f"the other {total - same} are"
        return (
            f"{same} of {total} printed numbers agree with ours digit for digit; {rest} explained."
        )

    def as_data(self) -> dict[str, Any]:
        """Plain lists, dictionaries, strings and finite numbers; no time stamps."""
        import scipy

        return {
            "schema": SCHEMA,
            "versions": {"kullback": __version__, "numpy": np.__version__,
                         "scipy": scipy.__version__},
            "name": self.name,
            "seed": self.seed,
            "source": self.source,
            "question": self.question,
            "claim": self.claim,
            "answer": self.answer,
            "method": self.method,
            "limits": list(self.limits),
            "printed": [
                {"what": one.what, "printed": one.printed, "ours": one.ours,
                 "agrees": one.agrees, "why": one.why}
                for one in self.printed
            ],
            "parts": [
                {"title": part.title, "says": part.says, "shows": list(map(_shown, part.shows))}
                for part in self.parts
            ],
        }  # fmt: skip


def as_data(made: Sequence[Experiment]) -> dict[str, Any]:
    """Several experiments as one piece of data."""
    return {"schema": f"{SCHEMA}-list", "experiments": [one.as_data() for one in made]}


def cell(value: str | float | None) -> str:
    """A word as it is, a whole number with commas, any other number in four digits.

    Example:
        >>> cell("k1"), cell(65536), cell(0.0221575), cell(1234.56), cell(None)
        ('k1', '65,536', '0.02216', '1,235', '–')
    """
    if value is None or isinstance(value, str):
        return value or "–"
    if isinstance(value, int):
        return f"{value:,}"
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.{DIGITS}g}"


def _shown(one: Figure | Table) -> dict[str, Any]:
    if isinstance(one, Table):
        rows = [[_finite(value) for value in row] for row in one.rows]
        return {"kind": "table", "caption": one.caption, "heads": list(one.heads), "rows": rows}
    rows = [{field: _finite(row[field]) for field in one.heads} for row in one.rows]
    return {"kind": "figure", "title": one.title, "heads": dict(one.heads), "rows": rows}


def _finite(value: Any) -> Any:
    """A number that JSON has no word for stands as the word."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value
