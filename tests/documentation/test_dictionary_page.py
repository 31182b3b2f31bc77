"""The page on logged numbers has the dictionary's tables, and shows what commands print."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from kullback.cli import app
from kullback.dictionary import FRAMEWORKS, METRICS

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("page", ROOT / "scripts" / "dictionary_page.py")
assert _SPEC
assert _SPEC.loader
page = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(page)
TEXT = page.PAGE.read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"```console\n\$ kullback (.*)\n((?:.+\n(?:.*\n)*?))```", TEXT))


def test_the_tables_are_those_of_the_dictionary():
    assert page.filled(TEXT) == TEXT
    assert {name for _, name, _ in page.MARKED.findall(TEXT)} == set(page.PARTS)


def test_every_number_has_its_row():
    for framework in FRAMEWORKS:
        assert f"\n### {framework}\n" in TEXT
    for one in METRICS:
        assert page.line(page.row(one)) in TEXT


def test_the_changelog_counts_them():
    told = re.search(
        r"`kb\.dictionary`: (\d+) numbers that (\d+) projects", (ROOT / "CHANGELOG.md").read_text()
    )
    assert told
    assert (int(told[1]), int(told[2])) == (len(METRICS), len(FRAMEWORKS))


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_prints_what_the_page_shows(command):
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == 0
    assert done.stdout == SHOWN[command]


def test_there_is_something_to_compare():
    assert len(SHOWN) == 2
