"""Experiments as one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kullback import __version__
from kullback.reporting.experiment import PRINTED_HEADS, Experiment, Part, Table
from kullback.reporting.markup import Raw, drawn, shell, table

GALLERY = "The experiments of the documents, rerun"


def experiment_page(made: Sequence[Experiment]) -> str:
    """The whole page, styles included; it asks for nothing over the network.

    Args:
        made: The experiments; with more than one, the page begins with a list of them.
    """
    title = made[0].answer if len(made) == 1 else GALLERY
    body = "\n".join([_gallery(made) if len(made) > 1 else "", *map(_experiment, made)])
    return shell(title, body)


def _gallery(made: Sequence[Experiment]) -> str:
    lines = [
        f'<p><a href="#{one.name}">{one.name}</a>: {escape(one.question)}<br>'
        f"<b>{escape(one.answer)}</b></p>"
        for one in made
    ]
    return "\n".join([f'<p class="dim">kullback {__version__}</p>', f"<h1>{GALLERY}</h1>", *lines])


def _experiment(one: Experiment) -> str:
    return "\n".join(
        [
            f'<article id="{one.name}">',
            f'<p class="dim">kullback {__version__} · experiment {one.name} · seed {one.seed} · '
            f"after {escape(one.source)}</p>",
            f"<h1>{escape(one.answer)}</h1>",
            f"<p><b>Question.</b> {escape(one.question)}</p>",
            f"<p><b>Claim.</b> {escape(one.claim)}</p>",
            f"<p><b>Method.</b> {escape(one.method)}</p>",
            *map(_part, one.parts),
            "<h2>Every number that the document prints</h2>",
            f"<p>{escape(one.verdict())}</p>",
            _printed(one) if one.printed else "",
            "<h2>Limits</h2>",
            *(f"<p>{escape(limit)}</p>" for limit in one.limits),
            "</article>",
        ]
    )


def _part(part: Part) -> str:
    shows = [_table(one) if isinstance(one, Table) else drawn(one) for one in part.shows]
    return "\n".join([f"<h2>{escape(part.title)}</h2>", f"<p>{escape(part.says)}</p>", *shows])


def _table(one: Table) -> str:
    words = [
        place
        for place in range(len(one.heads))
        if all(isinstance(row[place], str | None) for row in one.rows)
    ]
    return table(one.heads, one.cells(), caption=one.caption, text=tuple(words))


def _printed(one: Experiment) -> str:
    rows = []
    for printed in one.printed:
        what, theirs, ours, verdict, why = printed.cells()
        kind = "yes" if printed.agrees else "with-care"
        what = Raw(f'<span class="whole">{escape(what)}</span>')
        rows.append((what, theirs, ours, Raw(f'<span class="{kind}">{verdict}</span>'), why))
    return table(PRINTED_HEADS, rows, text=(4,))
