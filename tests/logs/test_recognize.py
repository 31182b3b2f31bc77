from __future__ import annotations

from pathlib import Path

import pytest

from kullback.dumps.errors import DumpError
from kullback.logs.recognize import files_of, format_of


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ('{"step": 1, "kl": 0.5}\n', "JSON lines"),
        ('{"step": 1, "log_probs/mean": -1.5, "kl": 0.5}\n', "JSON lines"),
        ('\ufeff{"step": 1, "kl": 0.5}\n', "JSON lines"),
        ('{"step": 1, "kl": [0.5]}\n', ""),
        ('{"log_history": [], "global_step": 1}', "trainer state"),
        ("step,kl\n1,0.5\n", "CSV"),
        ("just text\n", ""),
        ("", ""),
        ("{broken\n", ""),
        ('{"sequence": 1, "log_probs.old": -1, "log_probs.current": -2}\n', ""),
        ('{"sequence": 1, "step": 1, "logp_new": -1, "logp_old": -2}\n', ""),
        ('{"id": 1, "logp_new": -1, "logp_old": -2}\n', ""),
        ('{"train": {"kl": 0.5}}\n', "JSON lines"),
    ],
)
def test_text_is_told_by_what_it_holds(tmp_path, text, format):
    (tmp_path / "a").write_text(text, encoding="utf-8")
    assert format_of(tmp_path / "a") == format


def test_a_long_state_is_told_by_its_history(tmp_path):
    rows = ", ".join('{"step": 1, "kl": 0.5}' for _ in range(4000))
    (tmp_path / "trainer_state.json").write_text('{\n "log_history": [' + rows + "]}")
    assert format_of(tmp_path / "trainer_state.json") == "trainer state"


def test_nothing_is_no_log(tmp_path):
    assert format_of(tmp_path / "none") == ""
    assert format_of(tmp_path) == ""


def test_files_lie_a_few_folders_deep(data):
    assert [one.name for one in files_of(data, "trackio")] == ["trackio.db"]
    assert [one.name for one in files_of(data, "MLflow")] == ["metrics"]
    assert files_of(Path("x"), "CSV") == [Path("x")]


def test_what_cannot_be_read_is_said(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "a")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DumpError, match="a cannot be read: Permission denied"):
        format_of(tmp_path / "a")
