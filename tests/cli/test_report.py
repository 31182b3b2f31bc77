from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kullback as kb
from kullback.cli import app
from kullback.worlds import CLEAN_WORLDS

run = CliRunner().invoke


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    path = tmp_path / "clean.parquet"
    kb.write([CLEAN_WORLDS["training_loop"](16).sample(np.random.default_rng(0))], path)
    return path


def test_the_demo_reports_and_exits_with_0():
    done = run(app, ["report", "--demo"])
    assert done.exit_code == 0
    assert "tokens-do-not-match-text" in done.stdout


def test_json_on_standard_output_is_json_and_nothing_else(clean):
    done = run(app, ["report", str(clean), "--json", "-"])
    assert json.loads(done.stdout)["schema"] == "kullback.report/1"


def test_page_and_data_are_written_and_named(clean, tmp_path):
    page, data = tmp_path / "r.html", tmp_path / "r.json"
    done = run(app, ["report", str(clean), "--html", str(page), "--json", str(data)])
    assert done.exit_code == 0
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(data.read_text())["source"]["files"] == ["clean.parquet"]
    assert done.stdout.endswith(f"Wrote {page}\nWrote {data}\n")


def test_jobs_do_not_change_a_byte(clean, tmp_path):
    files = [str(clean)]
    for seed in (1, 2, 3):
        path = tmp_path / f"more{seed}.parquet"
        kb.write([CLEAN_WORLDS["training_loop"](16).sample(np.random.default_rng(seed))], path)
        files.append(str(path))
    outs = [run(app, ["report", *files, "--json", "-", "--jobs", n]).stdout for n in ("1", "3")]
    assert outs[0] == outs[1]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--demo", "--fail-on", "error"], 1),
        (["--demo", "--fail-on", "warning"], 1),
        (["CLEAN", "--fail-on", "warning"], 0),
        (["CLEAN"], 0),
    ],
)
def test_fail_on_decides_the_exit_status(clean, args, code):
    args = [str(clean) if arg == "CLEAN" else arg for arg in args]
    assert run(app, ["report", *args]).exit_code == code


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "name the files to read, or give --demo"),
        (["--demo", "CLEAN"], "name the files to read, or give --demo"),
        (["nowhere.parquet"], "nowhere.parquet"),
        (["CLEAN", "--map", "current"], "write role=column"),
        (["CLEAN", "--map", "current=nothing"], "nothing"),
        (["CLEAN", "--map", "old=a", "--map", "old=b"], "gives old two columns: a and b"),
        (["--demo", "--map", "old=a"], "--map and --strict are for files"),
        (["--demo", "--strict"], "--map and --strict are for files"),
        (["CLEAN", "--question", "KL(a)"], "is no question"),
        (["CLEAN", "--question", "KL(a||b)"], "needs log-probs of a"),
        (["CLEAN", "--html", "no/such/folder/r.html"], "there is no folder no/such/folder"),
        (["CLEAN", "--json", "/"], "is no file name"),
        (["/dev/null"], "no regular file"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(clean, args, said):
    args = [str(clean) if arg == "CLEAN" else arg for arg in args]
    done = run(app, ["report", *args])
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.startswith("kullback: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_headline_without_a_number_is_an_error_and_without_an_interval_a_warning(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"log_probs.old": [-1.0], "log_probs.current": [-1.1]}\n')
    assert run(app, ["report", str(path), "--fail-on", "warning"]).exit_code == 1
    assert run(app, ["report", str(path), "--fail-on", "error"]).exit_code == 0
    path.write_text('{"log_probs.old": [null], "log_probs.current": [-1.1]}\n')
    assert run(app, ["report", str(path), "--fail-on", "error"]).exit_code == 1


def test_a_terminal_without_unicode_gets_the_whole_report(clean):
    import os
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", "from kullback.cli import main; main()", "report", str(clean)],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Passed:" in done.stdout


def test_questions_are_added_to_the_usual_ones(clean):
    asked = "KL(old||reference) ~ rollout per sequence"
    done = run(app, ["report", str(clean), "--json", "-", "--question", asked])
    texts = [one["question"]["text"] for one in json.loads(done.stdout)["questions"]]
    assert texts == [
        "KL(rollout||old)",
        "KL(rollout||current)",
        "KL(rollout||reference)",
        "KL(current||reference) ~ rollout",
        asked,
    ]
