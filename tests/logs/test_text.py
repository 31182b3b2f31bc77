from __future__ import annotations

import pytest

from kullback.dumps.errors import DumpError
from kullback.logs.read import read_log


def written(tmp_path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def held(log) -> dict:
    return {name: (one.steps.tolist(), one.values.tolist()) for name, one in log.series.items()}


@pytest.mark.parametrize(
    "text",
    [
        '{"step": 1, "a": {"kl": 0.5}}\n\n{"step": 2, "a": {"kl": 1}}\n',
        '{"global_step": 1, "a/kl": 0.5, "flag": true}\n{"global_step": 2, "a/kl": 1}\n',
        '{"step": 1, "data": {"a/kl": 0.5}}\n{"step": 2, "data": {"a/kl": 1}}\n',
        '{"step": 1, "tag": "a/kl", "value": 0.5}\n{"step": 2, "tag": "a/kl", "value": 1}\n',
        '{"config": {"lr": "x"}}\n{"step": 1, "a/kl": 0.5}\n{"step": 2, "a/kl": 1, "t": [1]}\n',
    ],
)
def test_lines_may_be_laid_out_in_many_ways(tmp_path, text):
    if "[1]" in text:
        text = text.replace(', "t": [1]', "")
    assert held(read_log(written(tmp_path, "log.jsonl", text))) == {"a/kl": ([1, 2], [0.5, 1])}


def test_without_steps_rows_are_counted(tmp_path):
    log = read_log(written(tmp_path, "log.jsonl", '{"kl": 1}\n{"kl": 2}\n'))
    assert held(log) == {"kl": ([0, 1], [1, 2])}
    assert "rows are counted" in log.notes[0]


def test_rows_without_the_step_are_counted_and_said(tmp_path):
    log = read_log(written(tmp_path, "log.jsonl", '{"step": 1, "kl": 1}\n{"final": 3}\n'))
    assert log.notes == ("1 rows without step were left out",)


def test_a_line_that_is_still_written_is_left_out(tmp_path):
    log = read_log(written(tmp_path, "log.jsonl", '{"step": 1, "kl": 1}\n{"step": 2, "k'))
    assert log.steps == 1
    assert log.notes == ("log.jsonl ends within a line: it may still be written",)


@pytest.mark.parametrize(("last", "steps"), [("3,0.", 3), ("3", 2), ("", 2)])
def test_of_a_table_that_is_still_written_the_last_row_is_doubted(tmp_path, last, steps):
    log = read_log(written(tmp_path, "log.csv", f"step,kl\n1,0.5\n2,0.25\n{last}"))
    assert log.steps == steps
    said = ("log.csv ends within a line: its last number may be cut",)
    assert log.notes == (said if last else ())


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.jsonl", '{"step": 1, "kl": 1}\nnot\n{"step": 2}\n', "line 2: this is no JSON"),
        ("a.jsonl", '{"step": 1, "kl": 1}\n[1]\n', "line 2: a line of a step log is an object"),
        ("a.jsonl", '{"step": "x", "kl": 1}\n', "line 1, column step: 'x' is no step"),
        ("a.csv", "step,kl\n1,0.5\n2,abc\n", "line 3, column kl: 'abc' is no number"),
        ("a.csv", "step,kl\n1,0.5,7\n", "line 2: 3 cells under 2 heads"),
        ("a.csv", "step,kl\none,0.5\n", "line 2, column step: 'one' is no step"),
        ("a.json", '{"log_history": [3]}', "entry 0 of log_history is no object"),
        ("a.json", '{"log_history": [', "is no JSON"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, name, text, sentence):
    with pytest.raises(DumpError, match=sentence):
        read_log(written(tmp_path, name, text))


def test_a_table_skips_text_and_what_is_not_there(tmp_path):
    log = read_log(written(tmp_path, "a.csv", "step,kl,note\n1,0.5,good\n2,,bad\n\n3,nan,\n"))
    assert held(log)["kl"][0] == [1, 3]
    assert list(log) == ["kl"]


def test_an_export_of_wandb_has_runs_and_no_ends(tmp_path):
    text = '"Step","a - kl","a - kl__MIN","a - kl__MAX","b - kl"\n"1","0.5","0.5","0.5","7"\n'
    log = read_log(written(tmp_path, "a.csv", text), run="a")
    assert held(log) == {"kl": ([1], [0.5])}


def test_an_export_of_tensorboard_is_named_by_its_file(tmp_path):
    text = "Wall time,Step,Value\n1700000000.5,1,0.5\n1700000001.5,2,0.25\n"
    log = read_log(written(tmp_path, "run-a-tag-actor_kl.csv", text))
    assert held(log) == {"actor_kl": ([1, 2], [0.5, 0.25])}
    assert log["actor_kl"].times[0] == 1700000000.5
