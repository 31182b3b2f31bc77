"""The diagrams are what the script draws, and lead to questions, names and pages that there are."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import kullback as kb

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "which-kl-do-i-have.md").read_text(encoding="utf-8")
_SPEC = importlib.util.spec_from_file_location("diagrams", ROOT / "scripts" / "diagrams.py")
assert _SPEC
assert _SPEC.loader
diagrams = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(diagrams)

DRAWN = diagrams.drawings()
WAYS = [way for ways in diagrams.CHOICES.values() for way in ways]
LOGGED = [line for step in diagrams.LOOP for line in step.log if line.startswith("KL(")]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_committed_is_what_is_drawn(name):
    """After a change: ``python scripts/diagrams.py``."""
    assert (ROOT / "docs" / "images" / name).read_text(encoding="utf-8") == DRAWN[name]


@pytest.mark.parametrize("name", DRAWN)
def test_a_diagram_says_itself_and_stands_on_the_page(name):
    root = ElementTree.fromstring(DRAWN[name])
    named = {part.get("id"): part.text for part in root.iter() if part.get("id")}
    assert root.get("role") == "img"
    assert all(named[one] for one in (root.get("aria-labelledby") or "").split())
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")
    assert f'"images/{name}"' in PAGE


def without_room(drawing: str) -> list[str]:
    """Lines that leave their box, by a usual width of a letter in em."""
    root = ElementTree.fromstring(drawing)
    boxes = [
        {key: int(box.get(key) or 0) for key in ("x", "y", "width", "height")}
        for box in root.iter(f"{SVG}rect")
    ]
    found = []
    for line in root.iter(f"{SVG}text"):
        x, y, kind = int(line.get("x") or 0), int(line.get("y") or 0), line.get("class") or ""
        size = 13 * 0.61 if "code" in kind else 17 * 0.58 if kind == "head" else 14 * 0.52
        right = min(
            box["x"] + box["width"]
            for box in boxes
            if 0 <= x - box["x"] <= box["width"] and 0 <= y - box["y"] <= box["height"]
        )
        if x + size * len(line.text or "") > right:
            found.append(line.text or "")
    return found


@pytest.mark.parametrize("name", DRAWN)
def test_every_line_has_room(name):
    assert without_room(DRAWN[name]) == []


def test_a_line_that_is_too_long_has_none(monkeypatch):
    long = "word " * 20
    monkeypatch.setattr(diagrams, "HOW", {"a": ""})
    monkeypatch.setattr(diagrams, "CHOICES", {"a": (diagrams.Way((long,), "", "b", "", ""),)})
    assert without_room(diagrams.choices(380)) == [long]


@pytest.mark.parametrize("text", sorted({way.name for way in WAYS if way.name} | set(LOGGED)))
def test_every_question_is_one_and_stands_in_the_lists(text):
    question = kb.Question.parse(text)
    assert f"`{text}`" in PAGE
    assert str(question) == text


@pytest.mark.parametrize("way", [way for way in WAYS if way.call.startswith("kb.")])
def test_every_call_is_a_public_name(way):
    (name,) = re.findall(r"^kb\.(\w+)", way.call)
    assert name in kb.__all__
    assert f"`kb.{name}(" in PAGE


@pytest.mark.parametrize("page", sorted({way.page for way in WAYS if way.page}))
def test_every_page_is_in_the_list_of_the_site(page):
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (file,) = re.findall(rf"- {re.escape(page)}[^:]*: (\S+\.md)$", nav, re.MULTILINE)
    assert f"]({file}" in PAGE
