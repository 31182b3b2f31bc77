from __future__ import annotations

import pytest

from kullback.diagnosis.finding import CODES
from kullback.explaining.codes import explain_code
from kullback.explaining.examples import example

SAID = {code: explain_code(code) for code in CODES}
LABELS = ("Means", "Told when", "Example", "Clean twin", "No worry", "Do", "Tested")


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained_on_one_screen(code):
    said = SAID[code]
    assert tuple(section.label for section in said.sections) == LABELS
    assert all(section.text for section in said.sections)
    assert said.caption == CODES[code].caption
    assert 20 <= len(said.lines(80)) <= 40


@pytest.mark.parametrize("code", CODES)
def test_it_shows_the_claim_the_numbers_and_the_advice_of_its_example(code):
    finding = example(code).finding(code)
    parts = dict(SAID[code].sections)
    assert finding.claim in parts["Example"]
    assert finding.cost in parts["Example"]
    assert parts["Do"] == finding.advice
    assert SAID[code].numbers == finding.numbers


@pytest.mark.parametrize("code", CODES)
def test_it_says_whether_the_code_accuses(code):
    means = dict(SAID[code].sections)["Means"]
    assert ("it accuses nobody" in means) != CODES[code].accuses


def test_what_else_the_example_shows_is_not_hidden():
    assert "» Found besides: not-log-probs." in dict(SAID["not-normalized"].sections)["Example"]
    assert "Found besides" not in SAID["shifted-by-one"].text


def test_figures_of_the_recorded_run_are_told_of_accusing_codes_alone():
    assert "17 of 23,400" in SAID["sampler-mismatch"].text.replace("\n            ", " ")
    for kind, file in {
        "dump": "results/accusations.jsonl",
        "log": "results/step_logs.json",
    }.items():
        told = {code for code, said in SAID.items() if file in said.text}
        assert told == {code for code, said in CODES.items() if said.accuses and said.of == kind}
