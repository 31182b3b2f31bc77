"""The command ``kullback`` and its verbs.

Built with click, which needs nothing else and starts quickly. What computes is imported by the
verb that needs it.
"""

from __future__ import annotations

import io
import sys

import click

from kullback import __version__
from kullback.cli.compare import compare
from kullback.cli.explain import explain
from kullback.cli.probe import probe
from kullback.cli.report import report
from kullback.cli.reproduce import reproduce
from kullback.cli.selftest import selftest
from kullback.cli.watch import watch


class _InOrder(click.Group):
    """A group whose help lists the verbs as they were added, what a newcomer needs first."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.commands)


@click.group(cls=_InOrder, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="kullback %(version)s")
def app() -> None:
    """A KL divergence you can trust: how big, how sure, of what, and what is wrong with it.

    \b
    I have:
      a number      kullback explain kl --value -0.031 --tokens 8192
      rollouts      kullback report rollouts/*.parquet --html report.html
      a step log    kullback report wandb/offline-run-1
      a loss        kullback probe my_losses.py:kl_loss
      two runs      kullback compare before.parquet after.parquet
      nothing yet   kullback report --demo
    """


app.add_command(report)
app.add_command(explain)
app.add_command(probe)
app.add_command(compare)
app.add_command(watch)
app.add_command(reproduce)
app.add_command(selftest)


def main() -> None:
    """Run the command line; it has its own name, whatever it was started by."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what a terminal cannot show is a question mark
    app(prog_name="kullback")
