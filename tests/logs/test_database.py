from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from kullback.dumps.errors import DumpError
from kullback.logs.read import read_log


def database(path, made: str, rows: list[tuple]) -> None:
    held = sqlite3.connect(path)
    held.execute(made)
    held.executemany(f"INSERT INTO metrics VALUES ({','.join('?' * len(rows[0]))})", rows)
    held.commit()
    held.close()


MLFLOW = "CREATE TABLE metrics (key, value, timestamp, run_uuid, step, is_nan)"
TRACKIO = "CREATE TABLE metrics (id INTEGER, timestamp, run_name, step, metrics)"


def test_nan_of_mlflow_is_one(tmp_path):
    database(tmp_path / "a.db", MLFLOW, [("kl", 0.0, 1000, "r", 1, 1), ("kl", 2.0, 1, "r", 2, 0)])
    values = read_log(tmp_path / "a.db")["kl"].values
    assert np.isnan(values[0])
    assert values[1] == 2.0


def test_a_trainers_own_step_is_the_step(tmp_path):
    """Two runs of one name: the logger counts on, the trainer begins anew."""
    rows = [
        (i, "2026-01-01T00:00:00", "r", i, f'{{"kl": {i}, "train/global_step": {10 * (i % 3)}}}')
        for i in range(6)
    ]
    database(tmp_path / "a.db", TRACKIO, rows)
    log = read_log(tmp_path / "a.db")
    assert log["kl"].steps.tolist() == [0, 10, 20]
    assert log["kl"].values.tolist() == [3, 4, 5]
    assert "start again at step 0" in log.notes[0]


@pytest.mark.parametrize(
    ("made", "row", "sentence"),
    [
        (MLFLOW, ("kl", "x", 1000, "r", 1, 0), "kl holds 'x', which is no number"),
        (TRACKIO, (7, "2026-01-01T00:00:00", "r", 1, "{"), "id 7: its metrics or its time"),
        (TRACKIO, (7, "noon", "r", 1, "{}"), "id 7: its metrics or its time"),
    ],
)
def test_a_bad_row_is_named(tmp_path, made, row, sentence):
    database(tmp_path / "a.db", made, [row])
    with pytest.raises(DumpError, match=sentence):
        read_log(tmp_path / "a.db")


def test_another_database_is_no_log(tmp_path):
    held = sqlite3.connect(tmp_path / "a.db")
    held.execute("CREATE TABLE other (a)")
    held.commit()
    held.close()
    with pytest.raises(DumpError, match="is no step log"):
        read_log(tmp_path / "a.db")


def test_a_damaged_database_is_refused(tmp_path):
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\x00" + bytes(200))
    with pytest.raises(DumpError, match="cannot be read as an SQLite file"):
        read_log(tmp_path / "a.db")
