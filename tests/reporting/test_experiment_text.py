from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from kullback.reporting.experiment import Experiment, Part, Printed, Table
from kullback.reporting.experiment_text import print_experiments

MADE = Experiment(
    name="one", source="A & B", question="Is it?", claim="[bold]It[/bold] is.", answer="It is 2.",
    method="By hand.", parts=(Part("First", "Seen.", (Table("All.", ("of", "x"), [("a", 1.5)]),)),),
    printed=(Printed("two", "2.0", 2.04), Printed("a tie", "0.002", 0.0025, "It is a tie.")),
    limits=("None.",), seed=3,
)  # fmt: skip


def printed(made, width):
    file = io.StringIO()
    print_experiments(made, Console(file=file, width=width))
    return file.getvalue()


@pytest.mark.parametrize("width", [60, 120])
def test_it_says_all_of_it_within_the_width(width):
    said = printed([MADE, MADE], width)
    assert max(map(len, said.splitlines())) <= width
    assert said.count("It is 2.") == 2
    order = ["It is 2.", "Claim: [bold]It[/bold] is.", "First", "All.", "1 of 2 printed", "None."]
    places = [said.index(part) for part in order]
    assert places == sorted(places)


def test_numbers_stand_to_the_right_and_words_to_the_left():
    lines = printed([MADE], 100).splitlines()
    (tie,) = [line for line in lines if line.startswith("a tie")]
    assert tie.split() == ["a", "tie", "0.002", "0.00250", "differs", "It", "is", "a", "tie."]
    (two,) = [line for line in lines if line.startswith("two")]
    assert two.index("2.0") > tie.index("0.002")


def test_no_heads_where_the_document_prints_no_number():
    said = printed([replace(MADE, printed=())], 100)
    assert "The document prints no number on this.\n\nLimits" in said
    assert "remark" in printed([MADE], 100)
    assert "remark" not in said
