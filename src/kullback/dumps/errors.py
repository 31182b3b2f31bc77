"""What is wrong with a dump: a file that cannot be read, a row that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass


class DumpError(ValueError):
    """A dump cannot be read or written; one sentence says what, where, and what to do."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A row that was left out, and why.

    Args:
        file: The file it stands in.
        row: Its row, counted from 0 (in JSON lines: the line number less 1).
        place: The same for a person: ``row 16`` or ``line 17``.
        reason: What is wrong with it.

    Example:
        >>> print(Damaged("a.jsonl", 16, "line 17", "mask holds 2: a mask is 0 or 1"))
        a.jsonl, line 17: mask holds 2: a mask is 0 or 1
    """

    file: str
    row: int
    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, {self.place}: {self.reason}"
