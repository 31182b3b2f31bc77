"""``kullback selftest``: does it compute right on this machine, and what do its detectors see?"""

from __future__ import annotations

import os
import sys

import click

from kullback import __version__
from kullback.cli import options
from kullback.cli.delivery import deliver
from kullback.cli.failing import one_sentence, require_place


@click.command(short_help="Does it compute right on this machine?")
@options.json
def selftest(json: str | None) -> None:
    """Check formulas, estimates, files and detectors, in less than a minute.

    Formulas and estimates are held to numbers of 34 digits, in torch and JAX too where these are
    installed; dumps are written and read again. Each fault that the simulated worlds know is put
    into them, and the table says as which code it was told; on honest worlds hardly anybody may be
    accused. All that is drawn has a seed.

    \b
    Examples:
      kullback selftest
      kullback selftest --json selftest.json

    Exit status: 0 if nothing failed, 1 if something did. What this release cannot see or what is
    not installed is not reached; that is no failure.
    """
    with one_sentence():
        require_place(json if json != "-" else None)
    from kullback.reporting.document import plain
    from kullback.reporting.selftest_text import print_selftest
    from kullback.selftest.run import selftest as run

    # Else JAX takes three quarters of a GPU, on which somebody may be training.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    made = run(__version__, lambda title: click.echo(f"{title} …", err=True))
    with one_sentence():
        deliver(
            plain(made.as_data()),
            html=None,
            json=json,
            page=str,
            show=lambda _, console: print_selftest(made, console),
        )
    sys.exit(0 if made.passed else 1)
