"""Every ask of every case is answered within its tolerance, or listed with the reason why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .answers import (
    ANSWERS,
    CONTROL,
    DENSITIES,
    DISTRIBUTIONS,
    SAMPLED,
    SEQUENCES,
    TOLD,
    VERDICTS,
    WEIGHED,
)
from .entries import NoQuestion
from .gradients import GRADIENTS

NUMBERS = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}  # for which JSON has no word


def decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: decoded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [decoded(one) for one in value]
    return NUMBERS.get(value, value) if isinstance(value, str) else value


DATA = Path(__file__).with_name("data")
CASES = {
    path.stem: decoded(json.loads(path.read_text(encoding="utf-8")))
    for path in sorted(DATA.glob("*.json"))
}
ENTRIES = {
    (case, ask): entry for case, entries in ANSWERS.items() for ask, entry in entries.items()
}
ANSWERED = {key: entry for key, entry in ENTRIES.items() if callable(entry)}


def test_each_ask_of_each_case_stands_in_the_table_once():
    asked = {(name, ask) for name, case in CASES.items() for ask in case["ask"]}
    assert ENTRIES.keys() == asked
    assert len(ANSWERS) == sum(
        map(len, (SAMPLED, SEQUENCES, DISTRIBUTIONS, DENSITIES, GRADIENTS, CONTROL, WEIGHED))
    )


def test_what_is_not_answered_has_its_reason():
    rest = [entry for entry in ENTRIES.values() if not callable(entry)]
    assert all(isinstance(one, NoQuestion) and one.why for one in rest)


def test_each_verdict_that_is_asked_for_stands_in_the_map():
    verdicts = [key for key in ENTRIES if key[1] == "verdict"]
    asked = {
        CASES[case]["expected"][ask]
        for case, ask in verdicts
        if not isinstance(ENTRIES[case, ask], NoQuestion)
    }
    assert asked == VERDICTS.keys()


@pytest.mark.parametrize("name", TOLD)
def test_the_report_tells_the_fault_that_nobody_asks_for(name: str):
    for code, entry in TOLD[name].items():
        assert callable(entry)
        assert code in entry(CASES[name]["input"])


@pytest.mark.parametrize(("name", "ask"), ANSWERED)
def test_the_answer_is_the_expected_one(name: str, ask: str):
    case = CASES[name]
    answer, expected = ANSWERED[name, ask](case["input"]), case["expected"][ask]
    if ask == "verdict":
        assert VERDICTS[expected] in answer
    elif isinstance(expected, bool | str | dict):
        assert answer == expected
    else:
        tolerance = case["tolerance"]
        near = pytest.approx(np.array(expected), rel=tolerance["rel"], abs=tolerance["abs"])
        assert np.asarray(answer) == near
