from __future__ import annotations

import os
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


def test_a_link_stays_and_its_file_is_written(target: Path):
    link = target.with_name("link.txt")
    link.symlink_to(target.name)
    with whole_file(link) as draft:
        draft.write_text("the new one")
    assert link.is_symlink()
    assert target.read_text() == "the new one"
    assert set(target.parent.iterdir()) == {target, link}


def test_a_pipe_or_a_device_is_not_replaced(target: Path):
    """Root could rename over /dev/null."""
    pipe = target.with_name("pipe")
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is no regular file") as error, whole_file(pipe):
        raise AssertionError("the block is not to run")
    assert error.value.filename == str(pipe)
    assert pipe.is_fifo()


def test_the_error_names_the_file_and_not_its_draft(tmp_path: Path):
    target = tmp_path / "no folder" / "a.txt"
    with pytest.raises(FileNotFoundError) as error, whole_file(target) as draft:
        draft.write_text("x")
    assert error.value.filename == str(target)


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path):
    target = tmp_path / ("a" * 251 + ".txt")
    with whole_file(target) as draft:
        draft.write_text("the new one")
    assert only(target) == "the new one"
