"""The figures in the package are those of the recorded run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from kullback.diagnosis.finding import CODES
from kullback.explaining.measured import (
    CLEAN_REPORTS,
    FALSE_ALARMS,
    FAULTY_LOGS,
    FAULTY_REPORTS,
    FOUND,
    FOUND_IN_LOGS,
    HONEST_LOGS,
    LEAST,
    LOG_ALARMS,
)
from kullback.worlds import FAULTS, LOG_FAULTS

RESULTS = Path(__file__).parents[2] / "results" / "accusations.jsonl"
CELLS = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
CLEAN = [cell for cell in CELLS if cell["cell"].startswith("clean/")]
FAULTY = [cell for cell in CELLS if cell["cell"].startswith("fault/")]


def test_clean_reports_and_who_was_accused_there():
    told: Counter[str] = Counter()
    for cell in CLEAN:
        told.update(cell["codes"])
    assert sum(cell["reports"] for cell in CLEAN) == CLEAN_REPORTS
    assert dict(told) == FALSE_ALARMS


@pytest.mark.parametrize(
    "code",
    [code for code, said in CODES.items() if said.accuses and (said.of == "dump" or code in FOUND)],
)
def test_faults_in_which_a_code_was_found(code):
    told: Counter[str] = Counter()
    for cell in FAULTY:
        told[cell["cell"].split("/")[1]] += cell["codes"].get(code, 0)
    assert {fault: n for fault, n in told.items() if n >= LEAST} == FOUND[code]


def test_every_fault_was_put_into_as_many_reports():
    reports: Counter[str] = Counter()
    for cell in FAULTY:
        reports[cell["cell"].split("/")[1]] += cell["reports"]
    assert reports == dict.fromkeys(FAULTS, FAULTY_REPORTS)


LOGS = json.loads((RESULTS.parent / "step_logs.json").read_text(encoding="utf-8"))


def test_honest_step_logs_and_what_accused_there():
    told: Counter[str] = Counter()
    for cell in LOGS["clean"].values():
        told.update(cell["codes"])
        assert cell["accused"] <= 0.01 * cell["logs"]
    assert sum(cell["logs"] for cell in LOGS["clean"].values()) == HONEST_LOGS
    assert dict(told) == LOG_ALARMS


def test_faults_of_step_logs_in_which_a_code_was_found():
    assert LOGS["faulty"].keys() == LOG_FAULTS.keys()
    assert {cell["logs"] for cell in LOGS["faulty"].values()} == {FAULTY_LOGS}
    for code, faults in FOUND_IN_LOGS.items():
        told = {name: cell["codes"].get(code, 0) for name, cell in LOGS["faulty"].items()}
        assert {name: n for name, n in told.items() if n >= LEAST} == faults
