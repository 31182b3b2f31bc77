from __future__ import annotations

from pathlib import Path

import pytest

from kullback.diagnosis import log_coefficients, log_distance, log_events, log_pairs
from kullback.diagnosis.finding import CODES
from kullback.explaining.logged import LOGGED

ROOT = Path(__file__).parents[2]


def test_every_code_of_step_logs_is_written_of_and_no_other():
    assert set(LOGGED) == {code for code, said in CODES.items() if said.of == "log"}


@pytest.mark.parametrize("code", [code for code, lesson in LOGGED.items() if lesson.held_by])
def test_the_test_that_holds_it_is_there_and_speaks_of_it(code):
    assert f'"{code}"' in (ROOT / LOGGED[code].held_by).read_text(encoding="utf-8")
    assert not CODES[code].accuses


def test_thresholds_are_those_of_the_code_that_tells():
    for code, threshold in {
        "unit-or-scale": f"up to {log_pairs.LARGEST}",
        "holes-suspected": f"{log_pairs.ERRORS:g} standard errors",
        "controller-saturated": f"{log_coefficients.FOLD:g} times the first",
        "far-apart": f"{log_distance.FAR:g} nat per token",
        "noise-above-signal": f"More than {log_events.WRONG:.0%}",
    }.items():
        assert threshold in LOGGED[code].test, code
