from __future__ import annotations

import shutil

import pytest

from kullback.dumps.errors import DumpError
from kullback.logs.mlflow_files import metric_folders
from kullback.logs.read import read_log


def test_a_run_is_called_by_its_name(data, tmp_path):
    shutil.copytree(data / "mlruns", tmp_path / "mlruns")
    (tmp_path / "mlruns" / "0" / "run" / "meta.yaml").write_text("run_id: 1\nrun_name: 'fast'\n")
    assert read_log(tmp_path / "mlruns").run == "fast"
    assert read_log(tmp_path / "mlruns" / "0" / "run" / "metrics").run == "fast"


def test_lines_without_a_step_are_counted(tmp_path):
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "kl").write_text("1700000000000 0.5\n1700000001000 0.25\n17000000")
    log = read_log(tmp_path)
    assert log["kl"].steps.tolist() == [0.0, 1.0]
    assert log.notes == ("kl ends within a line: it may still be written",)


def test_a_bad_line_is_named(tmp_path):
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "kl").write_text("1700000000000 0.5 1\n1700000001000 x 2\n")
    with pytest.raises(DumpError, match="line 2: '1700000001000 x 2' is no line of a metric"):
        read_log(tmp_path)


def test_other_folders_of_the_name_are_none(tmp_path):
    (tmp_path / "metrics").mkdir()
    assert metric_folders(tmp_path) == []
    (tmp_path / "metrics" / "code.py").write_text("import this\n")
    assert metric_folders(tmp_path) == []
