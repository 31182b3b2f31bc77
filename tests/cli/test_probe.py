from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

import kullback as kb
from kullback.cli import app
from kullback.cli.probe import loaded

run = CliRunner().invoke

LOSSES = """
import numpy as np

class Losses:
    @staticmethod
    def inner(log_prob, ref_log_prob):
        return log_prob - ref_log_prob

def penalty(log_prob, ref_log_prob):
    return log_prob - ref_log_prob

def named(x, y):
    return np.expm1(y - x) - (y - x)

def raises(log_prob, ref_log_prob):
    raise RuntimeError("not today")
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with a file of losses, in which commands run."""
    (tmp_path / "my_losses.py").write_text(LOSSES, encoding="utf-8")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("my_losses", "broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "place", ["my_losses:penalty", "my_losses.py:penalty", "my_losses:Losses.inner"]
)
def test_the_command_prints_what_the_library_says(place):
    done = run(app, ["probe", place, "--library", "numpy"])
    assert done.exit_code == 0
    assert done.stdout == f"{kb.audit.probe(loaded(place), library='numpy')}\n"


def test_json_is_printed_or_written(here):
    words = ["probe", "my_losses:penalty", "--library", "numpy", "--json"]
    printed = json.loads(run(app, [*words, "-"]).stdout, parse_constant=pytest.fail)
    assert list(printed) == sorted(printed)
    done = run(app, [*words, "said.json"])
    assert done.stdout.startswith("penalty: ")
    assert json.loads((here / "said.json").read_text(encoding="utf-8")) == printed


def test_arguments_are_named():
    words = ["probe", "my_losses:named", "--library", "numpy", "--style", "reward"]
    done = run(app, [*words, "--argument", "x=current", "--argument", "y=reference"])
    assert "k3 of KL(current||reference)" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["my_losses"], "expected MODULE:FUNCTION"),
        (["my_losses:nothing"], "my_losses has no 'nothing'; its functions are pen"),
        (["nowhere.py:penalty"], "there is no file nowhere.py"),
        (["no_such_module:penalty"], "no_such_module cannot be imported: ModuleNotFoundError"),
        (["broken.py:penalty"], "broken.py cannot be imported: ModuleNotFoundError"),
        (["my_losses:LOSSES"], "my_losses has no 'LOSSES'"),
        (["my_losses:np"], "takes a function"),
        (["my_losses:named"], "needs 'x'"),
        (["my_losses:named", "--argument", "x"], "expected NAME=ROLE"),
        (["my_losses:penalty", "--argument", "z=current"], "has no parameter 'z'"),
        (["my_losses:raises", "--library", "numpy"], "RuntimeError (not today)"),
        (["my_losses:penalty", "--json", "nowhere/said.json"], "there is no folder"),
    ],
)
def test_what_cannot_be_probed_is_one_sentence_and_exit_status_2(words, told):
    done = run(app, ["probe", *words])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
