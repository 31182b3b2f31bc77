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


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Sixty rows of JSON lines, with a step, versions and labels of every kind."""
    rng, path = np.random.default_rng(0), tmp_path / "rows.jsonl"
    rows = []
    for i in range(60):
        p = rng.normal(-2, 0.3, size=1 + i % 9)
        rows.append(
            {
                "log_probs.rollout": p.tolist(),
                "log_probs.current": (p + rng.normal(0, 0.1, len(p))).tolist(),
                "step": i // 20,
                "versions": [i // 20] * len(p),
                "task": ["code", "math", None][i % 3],
                "correct": i % 4 == 0,
                "ids": [1, 2],
                "meta": {"a": 1},
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def by_of(*args: str) -> dict:
    done = run(app, ["report", *args, "--json", "-"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)["questions"][0]["by"]


def test_by_splits_along_built_in_axes_and_columns_of_the_file(labelled):
    by = by_of(str(labelled), "--by", "step, staleness", "--by", "position,task,correct,step")
    names = {axis: [cell["name"] for cell in cells] for axis, cells in by.items()}
    assert names == {
        "step": ["0", "1", "2"],
        "staleness": ["0"],
        "position": ["0", "1", "2–3", "4–7", "8–15"],
        "task": ["code", "math", None],
        "correct": ["false", "true"],
    }
    marks = {axis: cells[0]["estimates"]["k1"]["marks"] for axis, cells in by.items()}
    assert [axis for axis in marks if "selected-on-outcome" in marks[axis]] == ["correct"]
    for axis, cells in by.items():
        assert sum(cell["tokens"] for cell in cells) == sum(1 + i % 9 for i in range(60)), axis


def test_a_logged_staleness_is_read_where_it_cannot_be_derived(labelled):
    rows = [json.loads(line) for line in labelled.read_text().splitlines()]
    for i, row in enumerate(rows):
        del row["versions"]
        row["staleness"] = i % 2
    labelled.write_text("".join(json.dumps(row) + "\n" for row in rows))
    cells = by_of(str(labelled), "--by", "staleness")["staleness"]
    assert [(cell["name"], cell["sequences"]) for cell in cells] == [("0", 30), ("1", 30)]


def test_without_by_the_page_has_what_every_run_is_split_by_and_the_terminal_names_it(labelled):
    assert set(by_of(str(labelled))) == {"step", "position", "staleness"}
    done = run(app, ["report", str(labelled)])
    assert "current) by" not in done.stdout
    assert "or here with --by step,position." in done.stdout


def test_a_step_before_its_weights_spoils_the_split_and_not_the_report(labelled):
    rows = [json.loads(line) for line in labelled.read_text().splitlines()]
    rows[3]["versions"] = [9] * len(rows[3]["versions"])
    labelled.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(app, ["report", str(labelled), "--json", "-"])
    told = json.loads(done.stdout)
    assert set(told["questions"][0]["by"]) == {"step", "position"}
    assert "comes before version 9" in told["not_split_by"]["staleness"]
    assert run(app, ["report", str(labelled), "--by", "staleness"]).exit_code == 2


def test_the_demo_can_be_split_too():
    done = run(app, ["report", "--demo", "--by", "position"])
    assert done.exit_code == 0
    assert "KL(current||reference) ~ rollout by position" in done.stdout


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("nothing", "has no column 'nothing' to read as a label: it has correct, ids, log_probs."),
        ("ids", "column ids holds a list of numbers, but a label is one number"),
        ("meta", "column meta holds an object, but a label is one number"),
        ("step,", "write the names of axes, as in --by step,position"),
        ("", "write the names of axes, as in --by step,position"),
    ],
)
def test_an_axis_that_is_none_is_one_sentence_and_exit_2(labelled, by, said):
    done = run(app, ["report", str(labelled), "--by", by])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_staleness_that_cannot_be_derived_says_what_to_log(clean):
    done = run(app, ["report", str(clean), "--by", "staleness"])
    assert done.exit_code == 2
    assert "no step and no versions; log step" in done.stderr
    assert "log a column step" in run(app, ["report", str(clean), "--by", "step"]).stderr


def test_jobs_do_not_change_a_byte_of_the_cells(labelled, clean):
    args = ["report", str(labelled), "--by", "position,task,staleness", "--json", "-", "--jobs"]
    outs = [run(app, [*args, n]).stdout for n in ("1", "3")]
    assert outs[0] == outs[1] != ""
