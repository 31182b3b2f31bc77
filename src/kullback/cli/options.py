"""The options that several verbs take: the same name, and the same help."""

from __future__ import annotations

import click

questions = click.option(
    "--question",
    "questions",
    multiple=True,
    metavar="TEXT",
    help="Ask this too: 'KL(P||Q) ~ SAMPLER per sequence'; may be repeated.",
)
maps = click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="ROLE=COLUMN",
    help="Read this column as this role, or as mask, tokens, …; may be repeated.",
)
by = click.option(
    "--by",
    multiple=True,
    metavar="AXIS,…",
    help="Split each KL by position, step, staleness, length or any column, printed too; may be "
    "repeated. Step, position and staleness are in the page and the JSON anyway.",
)
html = click.option("--html", metavar="FILE", help="Write the page to this file.")
json = click.option("--json", metavar="FILE", help="Write the JSON to this file; '-' prints it.")
jobs = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Threads; the numbers do not change.",
)
