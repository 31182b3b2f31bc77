"""docs/experiments.md shows what `kullback reproduce` prints, and lists every experiment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kullback.cli import app
from kullback.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])")


def test_the_list_is_what_the_command_prints():
    (shown,) = re.findall(r"```console\n\$ kullback reproduce\n((?:.*\n)*?)```", PAGE)
    assert CliRunner().invoke(app, ["reproduce"]).stdout == shown


def test_the_table_has_every_experiment():
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE) == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("name", "found"), re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", PAGE, re.MULTILINE)
)
def test_every_number_of_the_table_is_one_that_the_experiment_found(name, found):
    """To the digits of the table; the README beside the code is made of a run."""
    folder = ROOT / "src" / "kullback" / "experiments" / name.replace("-", "_")
    made = NUMBER.findall((folder / "README.md").read_text(encoding="utf-8"))
    for told in NUMBER.findall(found):
        digits = len(told.partition(".")[2])
        assert told in {f"{float(one):.{digits}f}" for one in made}
