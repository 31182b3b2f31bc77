from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kullback.reporting.curves import curves
from kullback.reporting.experiment import Experiment, Part, Printed, Table, as_data
from kullback.reporting.write import as_json

LINE = [{"at": 1.0, "series": "k1", "value": 2.0}, {"at": 2.0, "series": "k1", "value": None}]
MADE = Experiment(
    name="one", source="A & B", question="Is it?", claim="It is <sure>.", answer="It is 2.",
    method="By hand.",
    parts=(Part("First", "Seen.", (Table("All.", ("of", "x"), [("a", 1.5), ("b", float("inf"))]),
                                   curves("A line.", LINE, "x", "y"))),),
    printed=(Printed("two", "2.0", 2.04), Printed("a tie", "0.002", 0.0025, "It is a tie.")),
    limits=("None.",), seed=3,
)  # fmt: skip


@pytest.mark.parametrize(
    ("printed", "ours", "agrees"),
    [
        ("1.42", 1.41774, True),
        ("1.42", 1.425, False),
        ("0.002", 0.0025, False),
        ("0.25", 0.25 - 1e-16, True),
        ("20", 20.4, True),
        ("0", -1e-17, True),
        ("0.0996504851", 0.09965048512293, True),
    ],
)
def test_digits_are_compared_as_printed_rounded_half_up(printed, ours, agrees):
    assert Printed("x", printed, ours).agrees is agrees


def test_ours_has_two_digits_more_and_no_minus_zero():
    assert Printed("x", "0", -1e-17).cells() == ["x", "0", "0.00", "agrees", ""]
    assert Printed("x", "1.7", 1.69503).cells()[2] == "1.695"


def test_the_verdict_counts():
    assert MADE.verdict().startswith("1 of 2 printed numbers agree with ours digit for digit; the")


def test_a_document_of_words_alone_has_a_verdict_too():
    made = replace(MADE, printed=())
    assert made.verdict() == "The document prints no number on this."


def test_data_are_plain_and_finite():
    told = json.loads(as_json(MADE.as_data()), parse_constant=pytest.fail)
    assert told["schema"] == "kullback.experiment/1"
    table, figure = told["parts"][0]["shows"]
    assert table["rows"] == [["a", 1.5], ["b", "inf"]]
    assert figure["rows"] == LINE
    assert told["printed"][1]["agrees"] is False
    assert as_data([MADE, MADE])["experiments"] == [MADE.as_data()] * 2
