from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import kullback as kb
from kullback.cli import app

run = CliRunner().invoke
DATA = Path(__file__).parents[1] / "logs" / "data"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    rows = ({"step": i, "rollout_corr/kl": -0.03 + 0.001 * (-1) ** i} for i in range(30))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", [one.name for one in sorted(DATA.iterdir())])
def test_every_format_is_reported_beside_dumps(name):
    done = run(app, ["report", str(DATA / name)])
    assert done.exit_code == 0, done.stderr
    assert "2 KL series over 12 steps" in done.stdout


def test_page_and_data_are_written_and_named(bad, tmp_path):
    page, data = tmp_path / "r.html", tmp_path / "r.json"
    how = ["--framework", "verl", "--tokens", "8192", "--html", str(page), "--json", str(data)]
    done = run(app, ["report", str(bad), *how])
    assert done.exit_code == 0
    assert "negative-beyond-chance" in done.stdout
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(data.read_text())["schema"] == "kullback.steps/1"


def test_the_data_alone_go_to_the_output(bad):
    done = run(app, ["report", str(bad), "--json", "-"])
    assert json.loads(done.stdout)["source"]["format"] == "JSON lines"


def test_findings_can_fail_a_pipeline(bad):
    how = ["report", str(bad), "--framework", "verl", "--tokens", "8192"]
    assert run(app, [*how, "--fail-on", "error"]).exit_code == 1
    honest = ["report", str(DATA / "trainer_state.json"), "--fail-on", "warning"]
    assert run(app, honest).exit_code == 0


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        (["--by", "step"], "--by is of dumps"),
        (["--policies", "--strict"], "--policies and --strict are of dumps"),
        (["--framework", "nobody"], "no framework 'nobody' is known"),
        (["--run", "x"], "has no run 'x'"),
        (["--html", "no/such/folder/a.html"], "there is no folder"),
    ],
)
def test_what_does_not_go_with_a_log_is_refused_in_one_sentence(bad, how, sentence):
    done = run(app, ["report", str(bad), *how])
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_does_not_go_with_a_dump_is_refused(bad):
    done = run(app, ["report", str(kb.demo_path()), "--tokens", "3", "--framework", "verl"])
    assert done.exit_code == 2
    assert "--framework and --tokens are of step logs; " in done.stderr
    assert "no rows of numbers with a step" in done.stderr
    done = run(app, ["report", "not/there", "--framework", "verl"])
    assert done.stderr.endswith("not/there: there is no such file or folder; check the path\n")
    done = run(app, ["report", str(bad), str(kb.demo_path())])
    assert "give one log at a time" in done.stderr


def test_a_damaged_log_is_refused_with_its_place(bad):
    bad.write_text('{"step": 1, "kl": 1}\n{"step": 2, "kl"\n{"step": 3}\n')
    done = run(app, ["report", str(bad)])
    assert done.exit_code == 2
    assert "log.jsonl, line 2: this is no JSON" in done.stderr
