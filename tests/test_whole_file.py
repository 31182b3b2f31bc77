from __future__ import annotations

from pathlib import Path

import pytest

from kullback import whole_file as module
from kullback.whole_file import whole_file


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("the old one")
    return path


def only(target: Path) -> str:
    assert list(target.parent.iterdir()) == [target]
    return target.read_text()


def test_the_file_is_new_when_the_block_ends(target: Path):
    with whole_file(target) as draft:
        draft.write_text("the new one")
        assert target.read_text() == "the old one"
    assert only(target) == "the new one"


def test_after_an_error_the_old_file_stands(target: Path):
    with pytest.raises(UnicodeEncodeError), whole_file(target) as draft, draft.open("w") as file:
        file.write("half of the n\ud83d")
    assert only(target) == "the old one"


def test_what_does_not_reach_the_disk_does_not_replace_it(target: Path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), whole_file(target) as draft:
        draft.write_text("the new one")
    assert only(target) == "the old one"
