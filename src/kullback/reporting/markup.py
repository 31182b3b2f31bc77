"""HTML, as the pages need it: the shell with its styles, and tables."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import Any


def shell(title: str, body: str, *, refresh: int | None = None) -> str:
    """A whole page, styles included; it asks for nothing over the network.

    With ``refresh`` the browser loads it anew after so many seconds.
    """
    again = "" if refresh is None else f'<meta http-equiv="refresh" content="{refresh}">\n'
    style = files("kullback.reporting").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{again}<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


class Raw(str):
    """Markup, to be written as it is."""


def table(head: Any, rows: Any, *, caption: str = "", text: tuple[int, ...] = ()) -> str:
    """A table; ``text`` says which columns are words, set to the left and wrapped."""

    def cell(tag: str, place: int, value: str) -> str:
        kind = ' class="text"' if place in text else ""
        return f"<{tag}{kind}>{value if isinstance(value, Raw) else escape(value)}</{tag}>"

    def line(tag: str, values: Any) -> str:
        return "<tr>" + "".join(cell(tag, i, value) for i, value in enumerate(values)) + "</tr>"

    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "\n".join(line("td", row) for row in rows)
    return (
        f'<div class="wide"><table>{named}<thead>{line("th", head)}</thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )
