from __future__ import annotations

import pytest

from kullback.explaining.explanation import WIDEST, Explanation, Section

LONG = "word " * 60
IT = Explanation(
    "ess",
    "number",
    "a caption " * 12,
    (
        Section("Means", f"{LONG}\n - kept as it is"),
        Section("A label of its own line", f"name\t{LONG}"),
    ),
    {"n": 1},
)


@pytest.mark.parametrize("width", [52, 80, 100])
def test_lines_are_as_wide_as_asked_and_no_wider(width):
    lines = IT.lines(width)
    assert width - 10 < max(map(len, lines)) <= width


def test_a_wide_screen_makes_no_long_lines_and_a_narrow_one_none_of_single_words():
    assert IT.lines(400) == IT.lines(WIDEST)
    assert IT.lines(10) == IT.lines(52)


def test_no_word_is_lost():
    parts = (f"ess: {IT.caption}", "Means", LONG, "- kept as it is", "A label of its own line")
    assert IT.text.split() == " ".join((*parts, "name", LONG)).split()


def test_labels_stand_at_the_margin_and_a_long_one_above_its_text():
    margin = [line for line in IT.lines() if line and not line.startswith(" ")]
    assert [line.split()[0] for line in margin if not line.startswith(("ess", "caption"))] == [
        "Means",
        "A",
    ]
    lines = IT.lines()
    below = lines[lines.index("A label of its own line") + 1]
    assert below.startswith("  name   ")


def test_as_data_has_no_layout():
    data = IT.as_data()
    assert data["schema"] == "kullback.explanation/1"
    assert data["sections"][1]["text"] == f"name: {LONG}"
    assert data["numbers"] == {"n": 1}
    assert str(IT) == IT.text
