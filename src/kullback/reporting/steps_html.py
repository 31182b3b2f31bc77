"""A judged step log as one page that needs nothing but itself."""

from __future__ import annotations

from html import escape
from typing import Any

from kullback.reporting.html import checks_table, finding_card
from kullback.reporting.markup import drawn, shell, table
from kullback.reporting.step_figures import series_figure
from kullback.reporting.steps_text import HEADS, is_or_may_be, series_row, what_was_read

_FIELDS = ("framework", "question", "method", "level", "version", "meaning")


def steps_page(report: dict[str, Any]) -> str:
    """The whole page, styles included; it asks for nothing over the network.

    Args:
        report: What ``steps_document`` made.
    """
    body = "\n".join(
        [
            f'<p class="dim">kullback {escape(report["kullback"])} · '
            f"{escape(what_was_read(report))}</p>\n<h1>{escape(report['headline'])}</h1>",
            "<h2>What stands out</h2>",
            *(finding_card(one) for one in report["findings"]),
            "" if report["findings"] else "<p>Nothing.</p>",
            "<h2>Each series</h2>",
            _overview(report),
            *map(_series, report["series"]),
            "<h2>What was checked</h2>",
            checks_table(report["checks"], of="subject"),
            _notes(report),
        ]
    )
    return shell(report["headline"], body)


def _overview(report: dict[str, Any]) -> str:
    if not report["series"]:
        return "<p>No series is known as a KL, by its name or by the dictionary.</p>"
    caption = (
        "Level: median of the running median. Noise: robust standard deviation of a step about it."
    )
    return table(HEADS, map(series_row, report["series"]), caption=caption)


def _series(one: dict[str, Any]) -> str:
    rows = [
        [str(metric[field] or "–") for field in _FIELDS] + [fits]
        for fits, metrics in (("yes", one["can_be"]), ("no: it is negative", one["cannot_be"]))
        for metric in metrics
    ]
    head = (*_FIELDS, "fits")
    known = table(head, rows, text=tuple(range(len(head))))
    listed = f"<details><summary>What its name means</summary>{known}</details>" if rows else ""
    return (
        f"<h3><code>{escape(one['name'])}</code></h3>"
        f"<p>It {is_or_may_be(one)} {escape(one['is'])}.</p>"
        f"{drawn(series_figure(one))}{listed}"
    )


def _notes(report: dict[str, Any]) -> str:
    tokens = report["tokens"]
    said = (
        "Tokens of a step: not logged under a name that is known."
        if tokens is None
        else f"Tokens of a step: about {tokens['per_step']:.0f}, {tokens['how']}"
        f"{', with those of prompts' if tokens['with_prompts'] else ''}."
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in report["source"]["notes"])
    return f"<h2>What was read</h2><p>{escape(said)}</p>" + (f"<ul>{notes}</ul>" if notes else "")
