from __future__ import annotations

from functools import cache

import pytest

from kullback.diagnosis.finding import CODES
from kullback.explaining import examples
from kullback.explaining.codes import explain_code
from kullback.explaining.explanation import Explanation

LABELS = ("Means", "Told when", "Example", "Clean twin", "No worry", "Do", "Tested")


@pytest.fixture(scope="session")
def said(shown):
    """The explanation of a code, made once."""

    @cache
    def explained(code: str) -> Explanation:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(examples, "example", shown)
            return explain_code(code)

    return explained


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained_on_one_screen(code, said):
    screen = said(code)
    assert tuple(section.label for section in screen.sections) == LABELS
    assert all(section.text for section in screen.sections)
    assert screen.name == code
    assert screen.caption == CODES[code].caption
    assert 20 <= len(screen.lines(80)) <= 40


@pytest.mark.parametrize("code", CODES)
def test_it_shows_the_claim_the_numbers_and_the_advice_of_its_example(code, said, shown):
    finding = shown(code).finding(code)
    parts = dict(said(code).sections)
    assert finding.claim in parts["Example"]
    assert finding.cost in parts["Example"]
    assert parts["Do"] == finding.advice
    assert said(code).numbers == finding.numbers


@pytest.mark.parametrize("code", CODES)
def test_it_says_whether_the_code_accuses(code, said):
    means = dict(said(code).sections)["Means"]
    assert ("it accuses nobody" in means) != CODES[code].accuses


def test_what_else_the_example_shows_is_not_hidden(said):
    assert "» Found besides: not-log-probs." in dict(said("not-normalized").sections)["Example"]
    assert "Found besides" not in said("shifted-by-one").text


def test_figures_of_the_recorded_run_are_told_of_accusing_codes_alone(said):
    assert "15 of 23,400" in said("sampler-mismatch").text.replace("\n            ", " ")
    for kind, file in {
        "dump": "results/accusations.jsonl",
        "log": "results/step_logs.json",
    }.items():
        told = {code for code in CODES if file in said(code).text}
        home = {code for code, one in CODES.items() if one.accuses and one.of == kind}
        assert told == home | ({"unit-or-scale"} if kind == "dump" else set())  # found in both
