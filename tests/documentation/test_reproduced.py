"""docs/experiments.md shows what `kullback reproduce` prints, and lists every experiment."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from kullback.cli import app
from kullback.experiments import EXPERIMENTS

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")


def test_the_list_is_what_the_command_prints():
    (shown,) = re.findall(r"```console\n\$ kullback reproduce\n((?:.*\n)*?)```", PAGE)
    assert CliRunner().invoke(app, ["reproduce"]).stdout == shown


def test_the_table_has_every_experiment():
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE) == list(EXPERIMENTS)
