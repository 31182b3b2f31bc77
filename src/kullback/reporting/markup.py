"""HTML, as the pages need it: the shell with its styles and scripts, tables, and figures."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

from kullback.reporting.figures import Figure
from kullback.reporting.words import number

VEGA = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js")  # in the order of their needs
# What a browser may do with the page: nothing over the network, whatever a dump's text says.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"


def shell(title: str, body: str, *, refresh: int | None = None) -> str:
    """A whole page, styles and scripts included; it asks for nothing over the network.

    Args:
        title: The name of the page.
        body: Its markup; where it has figures, what draws them is put behind it.
        refresh: Seconds after which the browser loads it anew; None: it does not.
    """
    again = "" if refresh is None else f'<meta http-equiv="refresh" content="{refresh}">\n'
    scripts = ""
    if 'class="plot"' in body:
        scripts = "".join(f"<script>{_part(f'vega/{name}')}</script>\n" for name in VEGA)
        scripts += f"<script>{_part('page.js')}</script>\n"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{again}<title>{escape(title)}</title>\n<style>\n{_part('page.css')}</style>\n</head>\n"
        f"<body>\n{body}\n{scripts}</body>\n</html>\n"
    )


def _part(name: str) -> str:
    return files("kullback.reporting").joinpath(name).read_text(encoding="utf-8")


def drawn(figure: Figure | None, data: str | None = None, *, folded: bool = True) -> str:
    """A figure with its title, its note and its data as a table.

    Args:
        figure: What to draw; None leaves the table alone, or nothing.
        data: The table, if not as the figure itself has it.
        folded: Whether the table is folded.
    """
    if figure is None:
        return data or ""
    rows = [[_cell(row[field]) for field in figure.heads] for row in figure.rows]
    words = tuple(i for i, field in enumerate(figure.heads) if field in ("name", "bin", "series"))
    behind = data or table(figure.heads.values(), rows, text=words)
    # As text of a script: "</script>" in a name must not end it.
    spec = json.dumps(figure.vega(), allow_nan=False).replace("<", "\\u003c")
    note = f'<p class="dim">{escape(figure.note)}</p>' if figure.note else ""
    return (
        f"<figure><figcaption>{escape(figure.title)}</figcaption>"
        f'<div class="plot" style="min-height:{figure.height}px" hidden></div>'
        f'<script type="application/json">{spec}</script>{note}'
        + (f"<details><summary>Data</summary>{behind}</details>" if folded else behind)
        + "</figure>\n"
    )


def _cell(value: Any) -> str:
    return number(value, 4) if isinstance(value, float) or value is None else str(value)


class Raw(str):
    """Markup, to be written as it is."""


def table(head: Any, rows: Any, *, caption: str = "", text: tuple[int, ...] = ()) -> str:
    """A table; ``text`` says which columns are words, set to the left and wrapped."""

    def cell(tag: str, place: int, value: str) -> str:
        long = " long" if len(value) > 30 else ""  # a phone must not set it a word to a line
        kind = f' class="text{long}"' if place in text else ""
        return f"<{tag}{kind}>{value if isinstance(value, Raw) else escape(value)}</{tag}>"

    def line(tag: str, values: Any) -> str:
        return "<tr>" + "".join(cell(tag, i, value) for i, value in enumerate(values)) + "</tr>"

    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "\n".join(line("td", row) for row in rows)
    return (
        f'<div class="wide"><table>{named}<thead>{line("th", head)}</thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )
