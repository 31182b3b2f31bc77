from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import kullback as kb
from kullback.following.kept import keep, kept, place_for, require_ours
from kullback.following.progress import Progress
from kullback.following.stamps import Stamp

ASKED = Progress("1", "/runs/a", ("KL(a||b)",), ("step",), {"a": "x"})


def counted() -> Progress:
    summary = kb.summarize(kb.read(kb.demo_path()))
    return replace(ASKED, closed=summary, seen={"b": Stamp(1, 2, 3)})


def test_what_is_kept_comes_back(tmp_path: Path):
    path = tmp_path / "state"
    assert kept(path, ASKED) == (ASKED, "")
    keep(counted(), path)
    found, why = kept(path, ASKED)
    assert why == ""
    assert found.seen == {"b": Stamp(1, 2, 3)}
    assert found.closed is not None
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"version": "2"}, "comes from another version of kullback"),
        ({"place": "/runs/b"}, "is of another place"),
        ({"asked": ()}, "answers other questions"),
        ({"by": ()}, "is split by other axes"),
        ({"map": {}}, "takes other columns"),
    ],
)
def test_what_answers_something_else_begins_anew_and_says_so(tmp_path: Path, other, why):
    keep(counted(), tmp_path / "state")
    asked = replace(ASKED, **other)
    found, said = kept(tmp_path / "state", asked)
    assert found is asked
    assert said == f"what {tmp_path / 'state'} holds {why}: all is counted from the start"


@pytest.mark.parametrize("data", [b"", b"x", b"\x80\x04."])
def test_a_damaged_file_begins_anew_and_says_so(tmp_path: Path, data: bytes):
    (tmp_path / "state").write_bytes(data)
    found, said = kept(tmp_path / "state", ASKED)
    assert found is ASKED
    assert said.endswith("or it is damaged; all is counted from the start")


def test_the_place_is_hidden_and_beside_the_page_or_what_is_watched(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place_for(Path("run"), None) == tmp_path / ".run.kullback-watch"
    assert place_for(Path(), None) == tmp_path.parent / f".{tmp_path.name}.kullback-watch"
    assert place_for(Path("run"), Path("x.html")) == tmp_path / ".x.html.kullback-watch"
    long = place_for(Path("r" * 250), None)
    long.write_text("x")


def test_only_a_state_or_nothing_is_overwritten(tmp_path: Path):
    path = tmp_path / "a"
    require_ours(path)
    path.touch()
    require_ours(path)
    keep(ASKED, path)
    require_ours(path)
    path.write_text("my notes")
    with pytest.raises(ValueError, match="a is no state of kullback watch: name another file"):
        require_ours(path)
