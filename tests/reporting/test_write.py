from __future__ import annotations

import json
from pathlib import Path

import pytest

import kullback as kb
from kullback import whole_file
from kullback.reporting import write


@pytest.fixture
def summary():
    return kb.summarize([kb.pack({"old": [[-1.0], [-0.5]], "current": [[-1.1], [-0.4]]})])


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_the_suffix_decides(tmp_path: Path, summary, name):
    made = kb.report(summary, tmp_path / name)
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") if name.endswith("html") else json.loads(text) == made
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_another_suffix_is_refused_and_nothing_is_written(tmp_path: Path, summary):
    with pytest.raises(ValueError, match=r"written as \.html or as \.json"):
        kb.report(summary, tmp_path / "report.txt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_if_writing_fails_the_old_report_stands(tmp_path: Path, summary, name, monkeypatch):
    target = tmp_path / name
    target.write_text("the old one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        kb.report(summary, target)
    assert target.read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_same_summary_gives_the_same_bytes_and_sorted_keys(summary):
    from kullback.reporting.document import document

    one = write.as_json(document(summary))
    assert one == write.as_json(document(summary))
    assert list(json.loads(one)) == sorted(json.loads(one))
