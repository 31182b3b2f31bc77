from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

import kullback as kb
from kullback.reporting.document import document, source_of
from kullback.reporting.screen import one_line, screen, waiting_lines


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    dump = kb.read(kb.demo_path())
    return document(kb.summarize(dump, by=["position"]), source_of(dump))


def lines(report, height: int, width: int = 100, notes=("Waits for a: b",)) -> list[str]:
    console = Console(width=width, height=height)
    return [line.plain for line in screen(report, notes, "the foot", console)]


@pytest.mark.parametrize("width", [40, 100, 200])
@pytest.mark.parametrize("height", [2, 5, 8, 12, 20, 24, 50])
def test_it_is_never_higher_nor_wider_than_the_screen(report, height: int, width: int):
    for one in (report, None):
        shown = lines(one, height, width, ["Waits for a: " + "b" * 300] * 3)
        assert 0 < len(shown) < height
        assert max(map(len, shown)) <= width
        if height > 11:
            assert shown[-1] == "the foot"


def test_a_high_screen_shows_everything(report):
    shown = lines(report, 60)
    text = "\n".join(shown)
    assert shown[0].startswith("demo.parquet: 128 sequences, 7632 tokens")
    assert "is 0.0319 nats per token" in shown[1]
    for finding in report["findings"]:
        assert f"{finding['severity']:7}  {finding['code']}" in text
    assert "32–63" in text
    assert "position  tokens" in text
    assert shown[-2:] == ["Waits for a: b", "the foot"]


def test_a_low_screen_keeps_the_first_findings_and_the_last_cells(report):
    shown = lines(report, 17)
    assert "tokens-do-not-match-text" in "\n".join(shown)
    assert "32–63" in shown[-3]
    assert not any(line.startswith("     0-1") for line in shown)
    few = lines(report | {"findings": report["findings"] * 9}, 14)
    assert any(line.startswith("and ") and line.endswith(" more findings") for line in few)


def test_without_an_axis_there_are_no_cells(report):
    plain = {**report, "questions": [one | {"by": {}} for one in report["questions"]]}
    assert "position" not in "\n".join(lines(plain, 60))


def test_without_a_report_there_are_the_notes(report):
    assert lines(None, 20) == ["Waits for a: b", "the foot"]


def test_names_from_files_cannot_move_the_cursor(report):
    assert "\x1b" not in "".join(lines(report, 20, notes=["Waits for \x1b[2J: no"]))


def test_a_line_says_what_is_new_and_what_is_gone(report):
    codes = [one["code"] for one in report["findings"]]
    severity = report["findings"][0]["severity"]
    line = one_line(report, [*codes[1:], "holes"])
    assert line.startswith("128 rows, 7632 tokens: KL(current||reference) ~ rollout is 0.0319")
    assert line.endswith(f"New: {severity} {codes[0]}. No longer: holes.")
    assert "New" not in one_line(report, codes)
    assert "No longer" not in one_line(report, codes)


def test_of_many_files_that_wait_some_are_named():
    many = waiting_lines({f"{i}.npz": "no" for i in range(9)})
    assert many == [*(f"Waits for {i}.npz: no" for i in range(3)), "and 6 more files wait"]
    assert len(waiting_lines({f"{i}.npz": "no" for i in range(4)})) == 4
