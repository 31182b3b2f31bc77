"""``kullback explain``: what a finding or a number means, and whether a value is noise or a bug."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kullback.cli import options
from kullback.cli.failing import one_sentence, require_place


@click.command(short_help="What a finding or a number means.")
@click.argument("name", required=False)
@click.option("--value", type=float, metavar="V", help="A mean of kl, k1, k2 or k3, in nats.")
@click.option("--tokens", type=int, metavar="N", help="The number of tokens that it is over.")
@click.option("--framework", metavar="F", help="Whose log it is: trl, trl/GRPO, verl, …")
@click.option("--version", metavar="V", help="Its release.")
@click.option("--config", metavar="FILE", help="The trainer's settings: YAML, JSON or TOML.")
@options.json
def explain(name: str | None, json: str | None, **given: Any) -> None:
    """Explain a finding code or a number, with an example that is computed now.

    Without NAME it lists everything that can be explained; with --framework, what that framework
    logs. With --value and --tokens it says whether a number from a log is noise or a bug.

    \b
    Examples:
      kullback explain
      kullback explain weights-degenerate
      kullback explain k3
      kullback explain kl --value -0.031 --tokens 8192
      kullback explain actor/kl_loss --framework verl --config run.yaml
      kullback explain ref_kl --framework prime-rl --value -0.031 --tokens 8192

    Exit status: 0, or 2 if nothing has that name.
    """
    from kullback.explaining.explain import explain as explained
    from kullback.reporting.document import plain
    from kullback.reporting.write import as_json, write_json

    with one_sentence():
        require_place(json if json != "-" else None)
        found = explained(name, **given)
        if json == "-":
            sys.stdout.write(as_json(plain(found.as_data())))
            return
        if json:
            write_json(plain(found.as_data()), Path(json))
    from rich.console import Console

    from kullback.reporting.text import print_explanation

    print_explanation(found, Console(highlight=False))
