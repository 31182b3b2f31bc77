"""``kullback reproduce``: the documents' experiments, rerun."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

import click

from kullback.cli import options
from kullback.cli.delivery import deliver
from kullback.cli.failing import fail, one_sentence, require_place


@click.command(short_help="Rerun an experiment of the documents.")
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="All of them, the page is a gallery.")
@options.html
@options.json
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, metavar="S", help="Of what is drawn."
)
def reproduce(name: str | None, every: bool, html: str | None, json: str | None, seed: int) -> None:
    """Rerun an experiment by which the documents on KL estimation argue, or one that goes on.

    Each takes seconds, has exact values beside whatever it draws, and holds every number that a
    document prints of it against ours. Without NAME it lists them.

    \b
    Examples:
      kullback reproduce
      kullback reproduce gaussian
      kullback reproduce gaussian --html gaussian.html --seed 1
      kullback reproduce --all --html gallery.html

    Exit status: 0, or 2 if no experiment has that name.
    """
    from kullback.experiments import EXPERIMENTS, reproduced

    if (name is not None) == every and (every or html or json):
        fail("name one experiment, or take --all of them")
    if name is None and not every:
        width = max(map(len, EXPERIMENTS))
        for known, question in EXPERIMENTS.items():
            sys.stdout.write(f"{known:{width}}  {question}\n")
        return
    with one_sentence():
        for path in (html, json if json != "-" else None):
            require_place(path)
        made = []
        for one in [name] if name else EXPERIMENTS:
            with _working(one):
                made.append(reproduced(one, seed))
    from kullback.reporting.experiment import as_data
    from kullback.reporting.experiment_html import experiment_page
    from kullback.reporting.experiment_text import print_experiments

    data = made[0].as_data() if name else as_data(made)
    with one_sentence():
        deliver(
            data,
            html=html,
            json=json,
            page=lambda _: experiment_page(made),
            show=lambda _, console: print_experiments(made, console),
        )


def _working(name: str) -> AbstractContextManager[object]:
    """A sign of life on the error stream; nothing where nobody looks."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(f"running {name}")
