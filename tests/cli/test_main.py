from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

import kullback
from kullback.cli import app, main

run = CliRunner().invoke


def test_version_and_help():
    assert run(app, ["--version"]).stdout == f"kullback {kullback.__version__}\n"
    assert "report" in run(app, ["--help"]).stdout


def test_the_command_has_its_name_whatever_starts_it(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["/usr/lib/python/pytest/__main__.py", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith("Usage: kullback ")


def test_help_of_a_verb_has_examples_and_exit_codes():
    text = run(app, ["report", "--help"]).stdout
    assert "kullback report --demo\n" in text
    assert "Exit status: 0" in text


def test_the_verbs_stand_in_the_order_in_which_they_are_needed():
    listed = run(app, ["--help"]).stdout.split("Commands:\n")[1]
    first = [line.split()[0] for line in listed.splitlines()]
    assert first[:3] == ["report", "explain", "probe"]
