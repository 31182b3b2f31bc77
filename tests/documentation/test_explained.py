"""What docs/explain.md shows under a command is what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from kullback.cli import app
from kullback.diagnosis.finding import CODES
from kullback.explaining.estimators import ESTIMATORS
from kullback.explaining.marks import MARKS
from kullback.explaining.trust import TRUST

PAGE = (Path(__file__).parents[2] / "docs" / "explain.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"```console\n\$ kullback (.*)\n((?:.*\n)*?)```", PAGE))


def test_there_is_something_to_compare():
    assert len(SHOWN) >= 3


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_prints_what_the_page_shows(command):
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == 0
    assert done.stdout == SHOWN[command]


@pytest.mark.parametrize("name", [*CODES, *MARKS, *ESTIMATORS, *TRUST])
def test_the_page_lists_every_name(name):
    assert re.search(rf"^  {re.escape(name)} ", SHOWN["explain"], re.MULTILINE)
