"""What is wrong with a dump: a file that cannot be read, a row that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass


class DumpError(ValueError):
    r"""A dump cannot be read or written; one sentence says what, where, and what to do.

    The names and bytes of a file that stand in it are made printable: it stays one line.

    Example:
        >>> print(DumpError("a.jsonl has no column 'x\n'"), DumpError("\x1b[2J is no file"))
        a.jsonl has no column 'x\n' \x1b[2J is no file
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


def printable(text: str) -> str:
    r"""The text with escapes for what is no character on a line: controls, halves of surrogates.

    Example:
        >>> printable("a\nb"), printable("Größe 5 µm")
        ('a\\nb', 'Größe 5 µm')
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


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
