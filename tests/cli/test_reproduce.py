from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from kullback.cli import app
from kullback.experiments import EXPERIMENTS

run = CliRunner().invoke


def test_without_a_name_it_lists_the_experiments():
    done = run(app, ["reproduce"])
    assert done.exit_code == 0
    for (name, question), line in zip(EXPERIMENTS.items(), done.stdout.splitlines(), strict=True):
        assert line.split(maxsplit=1) == [name, question]


def test_one_is_printed_and_written_as_a_page_and_as_data(tmp_path):
    page, data = tmp_path / "a.html", tmp_path / "a.json"
    done = run(app, ["reproduce", "gaussian", "--html", str(page), "--json", str(data)])
    told = json.loads(data.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert done.exit_code == 0
    assert "13 of 14 printed numbers agree" in done.stdout
    assert done.stdout.endswith(f"Wrote {page}\nWrote {data}\n")
    assert told["answer"] in page.read_text(encoding="utf-8")
    assert list(told) == sorted(told)


def test_data_on_the_output_stand_there_alone_and_carry_the_seed():
    done = run(app, ["reproduce", "gaussian", "--json", "-", "--seed", "7"])
    assert json.loads(done.stdout)["seed"] == 7


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["gausian"], "did you mean gaussian?"),
        (["gaussian", "--all"], "or take --all"),
        (["--json", "-"], "name one experiment"),
        (["--html", "a.html"], "name one experiment"),
        (["gaussian", "--html", "nowhere/a.html"], "there is no folder"),
        (["gaussian", "--seed", "-1"], "--seed"),
    ],
)
def test_what_cannot_be_done_is_said_with_exit_status_2(arguments, told):
    done = run(app, ["reproduce", *arguments])
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stdout == ""
