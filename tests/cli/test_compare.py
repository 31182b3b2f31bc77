from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from unittest import mock

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

import kullback as kb
from kullback.cli import app
from kullback.columns import Columns
from kullback.dumps.dump import Dump
from kullback.worlds import CLEAN_WORLDS

run = CliRunner().invoke
SCHEMA = json.loads(files("kullback.reporting").joinpath("compare.schema.json").read_text())


LOOP = CLEAN_WORLDS["training_loop"](16)


def sample(seed: int, step: int = 0) -> Columns:
    columns = LOOP.sample(np.random.default_rng(seed))
    return replace(columns, labels={"step": np.full(len(columns.lengths), step)})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a and b, a run of the steps 3, 5 and 7 in two files, and rows without steps or prompts."""
    place = tmp_path_factory.mktemp("dumps")
    kb.write(sample(0), place / "a.parquet")
    kb.write(sample(1), place / "b.jsonl")
    (place / "run").mkdir()
    kb.write([sample(3, 3), sample(5, 5)], place / "run" / "1.parquet")
    kb.write([sample(7, 7), sample(8, 3)], place / "run" / "2.parquet")
    kb.write(replace(sample(0), labels={}, cluster_kind="sequence"), place / "bare.parquet")
    return place


@pytest.fixture
def folder(written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(written)
    return written


def data(*args: str) -> dict:
    done = run(app, ["compare", *args, "--json", "-"])
    assert done.exit_code == 0, done.stderr
    made = json.loads(done.stdout)
    jsonschema.validate(made, SCHEMA)
    return made


def test_two_dumps_in_two_formats_are_those_that_the_library_compares(folder) -> None:
    made = data("a.parquet", "b.jsonl")
    sides = [kb.summarize(kb.read(name)) for name in ("a.parquet", "b.jsonl")]
    for told, found in zip(made["questions"], kb.compare(*sides), strict=True):
        assert told["question"]["text"] == str(found.question)
        assert told["changes"]["auto"]["difference"] == found.difference
        assert told["changes"]["auto"]["high"] == found.high
    assert (made["a"]["name"], made["b"]["name"]) == ("a.parquet", "b.jsonl")
    assert made["a"]["source"]["files"] == ["a.parquet"]


def test_it_prints_the_answer_first_and_exits_with_0(folder) -> None:
    done = run(app, ["compare", "a.parquet", "b.jsonl"])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[2].startswith("KL(current||reference) ~ rollout did not change beyond noise: B")


def test_a_dump_is_the_same_as_itself_and_as_its_copy(folder) -> None:
    kb.write(kb.read("b.jsonl"), "copy.parquet")
    for other in ("b.jsonl", "copy.parquet"):
        for one in data("b.jsonl", other)["questions"]:
            change = one["changes"]["auto"]
            assert (change["difference"], change["standard_error"]) == (0, 0)
    assert "is the same in A and B" in run(app, ["compare", "b.jsonl", "b.jsonl"]).stdout
    bare = data("bare.parquet", "bare.parquet")["headline"]
    assert (bare["change"]["difference"], bare["change"]["standard_error"]) == (0, 0)


def test_two_steps_are_compared_as_if_each_were_a_dump(folder) -> None:
    Path("three").mkdir()
    kb.write(sample(3, 3), "three/1.parquet")
    kb.write(sample(8, 3), "three/2.parquet")
    kb.write(sample(7, 7), "seven.parquet")
    by_step, apart = data("run", "--steps", "3, 7"), data("three", "seven.parquet")
    assert [by_step[side]["name"] for side in "ab"] == ["step 3 of run", "step 7 of run"]
    assert by_step["headline"] == apart["headline"]
    assert by_step["questions"] == apart["questions"]
    assert by_step["a"]["counts"] == apart["a"]["counts"]


def test_a_dump_of_two_steps_is_read_once(folder) -> None:
    with mock.patch.object(Dump, "__iter__", autospec=True, side_effect=Dump.__iter__) as reading:
        done = run(app, ["compare", "run/1.parquet", "run/2.parquet", "--steps", "3,7"])
    assert done.exit_code == 0, done.stderr
    assert reading.call_count == 1


def test_jobs_do_not_change_a_byte(folder) -> None:
    for args in (["a.parquet", "b.jsonl"], ["run", "--steps", "3,7"]):
        outs = [run(app, ["compare", *args, "--json", "-", "--jobs", n]).stdout for n in ("1", "3")]
        assert outs[0] == outs[1] != ""


def test_questions_are_added_and_page_and_data_are_written(folder) -> None:
    asked = "KL(old||reference) ~ rollout per sequence"
    args = ["a.parquet", "b.jsonl", "--question", asked, "--html", "c.html", "--json", "c.json"]
    done = run(app, ["compare", *args])
    assert done.stdout.endswith("Wrote c.html\nWrote c.json\n")
    assert Path("c.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    made = json.loads(Path("c.json").read_text(encoding="utf-8"))
    assert made["questions"][-1]["question"]["text"] == asked


def test_columns_are_mapped_on_both_sides(folder) -> None:
    for name, shift in (("x.jsonl", 0.1), ("y.jsonl", 0.3)):
        rows = [{"log_probs.old": [-1.0], "mine": [-1.0 - shift]} for _ in range(3)]
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = data("x.jsonl", "y.jsonl", "--map", "current=mine")
    assert made["headline"]["change"]["difference"] == pytest.approx(0.2)
    assert made["headline"]["pairing"]["shared"] == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "name two dumps, not 0"),
        (["a.parquet"], "name two dumps, not 1"),
        (["a.parquet", "b.jsonl", "run"], "name two dumps, not 3"),
        (["--steps", "3,7"], "name the files of which --steps are to be compared"),
        (["run", "--steps", "3"], "write two steps, as in --steps 3,7"),
        (["run", "--steps", "3,5,7"], "write two steps, as in --steps 3,7"),
        (["run", "--steps", "3,3"], "does not differ from itself"),
        (["run", "--steps", "3,4"], "no sequence is of step 4; the steps there are: 3, 5, 7"),
        (["bare.parquet", "--steps", "3,4"], "no step was read: log a column step"),
        (["a.parquet", "bare.parquet"], "A is clustered by prompt and B by sequence"),
        (["a.parquet", "nowhere.parquet"], "nowhere.parquet"),
        (["a.parquet", "b.jsonl", "--question", "KL(a)"], "is no question"),
        (["a.parquet", "b.jsonl", "--question", "KL(old||x)"], "a.parquet: KL(old||x) needs"),
        (["run", "--steps", "3,7", "--question", "KL(old||x)"], "run: KL(old||x) needs"),
        (["a.parquet", "b.jsonl", "--map", "current"], "write role=column"),
        (["a.parquet", "b.jsonl", "--html", "no/c.html"], "there is no folder no"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(folder, args, said) -> None:
    done = run(app, ["compare", *args])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.startswith("kullback: ")
    assert done.stderr.count("\n") == 1


def test_help_has_examples_and_exit_codes() -> None:
    text = run(app, ["compare", "--help"]).stdout
    assert "kullback compare before.parquet after.parquet\n" in text
    assert "Exit status: 0" in text
