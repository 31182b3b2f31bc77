from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kullback as kb
from kullback.dumps.errors import DumpError
from kullback.logs.read import is_step_log, read_log

STEPS = np.arange(1.0, 13.0)
# What scripts/step_logs.py logs.
VALUES = {
    "actor/kl_loss": STEPS / 1024,
    "actor/kl_coef": np.full(12, 0.0009765625),
    "rollout_corr/kl": (STEPS % 5 - 1) / 4096,
    "response_length/mean": 128 + STEPS,
}
FILES = {
    "events.out.tfevents.1700000000.host.1.0": ("TensorBoard", ""),
    "run-first.wandb": ("W&B", ""),
    "wandb-history.jsonl": ("JSON lines", ""),
    "wandb_export.csv": ("CSV", "first"),
    "mlruns": ("MLflow", "run"),
    "mlflow.db": ("MLflow", "first"),
    "trackio.db": ("trackio", "first"),
    "trainer_state.json": ("trainer state", ""),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_holds_the_same_run(data, name):
    log = read_log(data / name)
    assert (log.format, log.run) == FILES[name]
    assert log.notes == ()
    assert set(log) == set(VALUES)
    for series, values in VALUES.items():
        np.testing.assert_array_equal(log[series].steps, STEPS)
        np.testing.assert_array_equal(log[series].values, values)


def test_times_are_seconds(data):
    for name in ("events.out.tfevents.1700000000.host.1.0", "mlruns", "wandb-history.jsonl"):
        np.testing.assert_array_equal(read_log(data / name)["actor/kl_loss"].times, 1.7e9 + STEPS)
    assert np.isnan(read_log(data / "trainer_state.json")["actor/kl_loss"].times).all()


def test_the_format_is_told_by_what_a_file_holds(data, tmp_path):
    for name in FILES:
        if name != "mlruns":
            shutil.copy(data / name, tmp_path / "log")
            assert read_log(tmp_path / "log").format == FILES[name][0]


def test_a_folder_stands_for_what_is_in_it(data, tmp_path):
    (tmp_path / "run" / "deep").mkdir(parents=True)
    shutil.copy(data / "run-first.wandb", tmp_path / "run" / "deep" / "run-1.wandb")
    assert read_log(tmp_path).format == "W&B"
    shutil.copy(data / "trainer_state.json", tmp_path / "run")
    log = read_log(tmp_path)
    assert log.format == "W&B"
    assert "trainer state files" in log.notes[0]


def test_folders_of_tensorboard_are_runs(data, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(next(data.glob("*tfevents*")), tmp_path / name)
    with pytest.raises(DumpError, match=r"holds 2 runs: name one, --run NAME .*\(a, b\)"):
        read_log(tmp_path)
    assert read_log(tmp_path, run="b").run == "b"
    with pytest.raises(DumpError, match="has no run 'c': it has a, b"):
        read_log(tmp_path, run="c")


def test_of_checkpoints_the_last_holds_the_history(data, tmp_path):
    state = json.loads((data / "trainer_state.json").read_text())
    for step in (3, 12):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        held = state | {"global_step": step, "log_history": state["log_history"][:step]}
        (folder / "trainer_state.json").write_text(json.dumps(held))
    assert read_log(tmp_path).steps == 12


def test_several_offline_runs_need_a_name(data, tmp_path):
    for name in ("a", "b"):
        shutil.copy(data / "run-first.wandb", tmp_path / f"run-{name}.wandb")
    with pytest.raises(DumpError, match=r"holds 2 W&B files: name one \(run-a.wandb, run-b.wandb"):
        read_log(tmp_path)


def test_a_table_of_steps_may_be_parquet(tmp_path):
    path = tmp_path / "history.parquet"
    pq.write_table(pa.table({"_step": [1, 2], "kl": [0.5, None], "note": ["a", "b"]}), path)
    log = read_log(path)
    assert log.format == "Parquet"
    assert {name: one.values.tolist() for name, one in log.series.items()} == {"kl": [0.5]}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.txt", "hello\n", "is no step log that can be read here"),
        ("a.json", '{"log_history": 3}', "has no list log_history"),
        ("a.jsonl", '{"step": 1}\n', "holds no number of any step"),
    ],
)
def test_what_is_no_log_is_refused_in_one_sentence(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(DumpError, match=sentence):
        read_log(tmp_path / name)


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(DumpError, match="there is no such file or folder"):
        read_log(tmp_path / "none")


def test_dumps_are_no_logs(tmp_path):
    assert not is_step_log(kb.demo_path())
    rows = {
        "lists.jsonl": {"log_probs.rollout": [-1.0], "log_probs.current": [-1.5]},
        "tokens.jsonl": {"sequence": 1, "log_probs.rollout": -1.0, "log_probs.current": -1.5},
    }
    for name, row in rows.items():
        (tmp_path / name).write_text(json.dumps(row) + "\n")
        assert not is_step_log(tmp_path / name)
    assert not is_step_log(tmp_path)
