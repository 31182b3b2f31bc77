from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kullback as kb
from kullback.cli.showing import Lines, Redrawn, shown, why_nothing
from kullback.dumps import Damaged
from kullback.following.follower import UNSETTLED, Look
from kullback.reporting.document import document, source_of


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    dump = kb.read(kb.demo_path())
    return document(kb.summarize(dump), source_of(dump))


def a_follower(place: Path, **progress: Any) -> Any:
    known = {"damaged": [], "files": {}, "rows": 0} | progress
    return SimpleNamespace(place=place, every=10.0, progress=SimpleNamespace(**known))


def look(changed: bool = False, said=(), waiting=None) -> Look:
    return Look(changed, tuple(said), waiting or {})


def test_why_there_is_nothing_yet(tmp_path: Path):
    for place, progress, waiting, said in (
        (tmp_path / "a", {}, {}, f"{tmp_path / 'a'} is not there yet"),
        (tmp_path, {}, {}, f"{tmp_path} holds no dump yet"),
        (tmp_path, {"files": {"a": 1}}, {}, f"{tmp_path} holds no row yet"),
        (tmp_path, {}, {"a": "it is empty", "b": "x"}, "a: it is empty (and 1 more files wait)"),
        (
            tmp_path,
            {"damaged": [Damaged("a", 0, "line 1", "no")], "rows": 3},
            {},
            "no row can be used, of 3; the first: a, line 1: no",
        ),
    ):
        assert why_nothing(a_follower(place, **progress), look(waiting=waiting)) == said


def test_a_line_is_printed_for_a_change_and_for_nothing_else(report, tmp_path: Path, capsys):
    lines, one = Lines(once=False), a_follower(tmp_path)

    def printed(report: Any, look: Look) -> list[str]:
        lines.show(report, look, one)
        return capsys.readouterr().out.splitlines()

    with lines:
        assert printed(None, look()) == [f"Waits: {tmp_path} holds no dump yet"]
        assert printed(None, look()) == []
        [first] = printed(report, look(True))
        assert first.startswith("128 rows, 7632 tokens: ")
        assert "New: error tokens-do-not-match-text" in first
        assert printed(report, look()) == []
        less = report | {"findings": report["findings"][1:]}
        [again] = printed(less, look(True))
        assert again.endswith("No longer: tokens-do-not-match-text.")
        said = printed(less, look(True, ["a is gone"]))
        assert said == ["a is gone", again.removesuffix(" No longer: tokens-do-not-match-text.")]


def test_a_file_that_waits_is_news_when_it_waits_for_long(report, tmp_path: Path, capsys):
    lines, waits = Lines(once=False), look(waiting={"a.npz": "no"})
    for _ in range(3):
        lines.show(report, waits, a_follower(tmp_path))
    for _ in range(3):
        lines.show(report, look(waiting={"a.npz": UNSETTLED}), a_follower(tmp_path))
    out = capsys.readouterr().out
    assert out.count("Waits for") == out.count("Waits for a.npz: no\n") == 1
    once = Lines(once=True)
    once.show(report, waits, a_follower(tmp_path))
    assert capsys.readouterr().out.endswith("Waits for a.npz: no\n")


def test_a_terminal_is_redrawn_and_anything_else_gets_lines(capsys, monkeypatch):
    assert isinstance(shown(once=False), Lines)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert isinstance(shown(once=False), Redrawn)
    assert isinstance(shown(once=True), Lines)


def test_the_screen_says_when_it_was_looked_at_and_what_happened(report, tmp_path: Path, capsys):
    show = Redrawn()
    with show:
        show.show(
            report, look(True, ["a was written anew"], {"b": "it is empty"}), a_follower(tmp_path)
        )
        show.reading(500)
    out = capsys.readouterr().out
    assert " a was written anew" in out
    assert "Waits for b: it is empty" in out
    assert "Reading: 500 rows so far" in out
