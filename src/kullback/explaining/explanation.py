"""An explanation: labeled paragraphs that fit a screen, and the numbers in them."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any, NamedTuple

WIDTH = 80  # columns of the text, unless the reader's screen says otherwise
WIDEST = 100  # beyond, a line is hard to follow
LABEL = 12  # columns in which the labels stand
_NAME = 26  # and those of the names in a list


class Section(NamedTuple):
    """A label, and what is said under it: each line a paragraph.

    One that begins with a space is kept as it is; before a tab stands a name, in a list.
    """

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a name means, in sections. Its text is ``str(it)``.

    Args:
        name: The finding code, the number, or what was asked.
        kind: ``finding``, ``mark``, ``number``, ``value`` (a scalar judged) or ``list``.
        caption: The name in one line.
        sections: What is said, in order.
        numbers: The numbers of the example, or of the judgment.

    Example:
        >>> it = Explanation("k1", "number", "log p − log q", (Section("Unit", "Nats."),))
        >>> print(it)
        k1: log p − log q
        <BLANKLINE>
        Unit        Nats.
    """

    name: str
    kind: str
    caption: str
    sections: tuple[Section, ...]
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All of it, in lines of 80 columns."""
        return "\n".join(self.lines())

    def lines(self, width: int = WIDTH) -> list[str]:
        """All of it, in lines of at most so many columns; only the title and labels stand at 0."""
        width = max(min(width, WIDEST), 2 * _NAME)
        lines = textwrap.wrap(f"{self.name}: {self.caption}", width)
        for label, text in self.sections:
            indent = LABEL if len(label) < LABEL else 2
            rows = [row for part in text.splitlines() for row in _wrapped(part, width - indent)]
            heads = [label, *[""] * (len(rows) - 1)]
            if indent < LABEL:
                rows, heads = ["", *rows], [label, *[""] * len(rows)]
            lines.append("")
            lines += [
                f"{head:{indent}}{row}".rstrip() for head, row in zip(heads, rows, strict=True)
            ]
        return lines

    def as_data(self) -> dict[str, Any]:
        """As lists, dictionaries, strings and numbers."""
        return {
            "schema": "kullback.explanation/1",
            "name": self.name,
            "kind": self.kind,
            "caption": self.caption,
            "sections": [
                {"label": label, "text": text.replace("\t", ": ")} for label, text in self.sections
            ],
            "numbers": self.numbers,
        }

    def __str__(self) -> str:
        return self.text


def _wrapped(paragraph: str, width: int) -> list[str]:
    if paragraph.startswith(" "):
        return [paragraph[1:]]
    name, tab, text = paragraph.rpartition("\t")
    if len(name) >= _NAME:  # it has a line of its own
        return [name, *_wrapped(f"\t{text}", width)]
    return textwrap.wrap(
        text,
        width,
        initial_indent=f"{name:{_NAME}}" if tab else "",
        subsequent_indent=" " * _NAME if tab else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
