"""The command ``kullback`` and its verbs.

Typer builds the parser from the signatures. Its help stays plain: drawn boxes would cost more time
than all the rest of ``kullback --help``. What computes is imported by the verb that needs it.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from kullback import __version__
from kullback.cli.report import report

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(report)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kullback {__version__}")
        raise typer.Exit


@app.callback()
def kullback(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A KL divergence you can trust: how big, how sure, of what, and what is wrong with it."""


def main() -> None:
    """Run the command line; it has its own name, whatever it was started by."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what a terminal cannot show is a question mark
    app(prog_name="kullback")
