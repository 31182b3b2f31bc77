from __future__ import annotations

from pathlib import Path

import pytest

from kullback.diagnosis import drifting, limits, reading_faults
from kullback.diagnosis.finding import CODES
from kullback.estimation import conditions
from kullback.explaining.telling import TELLING

ROOT = Path(__file__).parents[2]


def test_every_code_that_accuses_nobody_is_written_of_and_no_other():
    telling = {code for code, said in CODES.items() if not said.accuses and said.of == "dump"}
    assert set(TELLING) == telling


@pytest.mark.parametrize("code", TELLING)
def test_the_test_that_holds_it_is_there_and_speaks_of_it(code):
    assert f'"{code}"' in (ROOT / TELLING[code].held_by).read_text(encoding="utf-8")


def test_thresholds_are_those_of_the_code_that_tells():
    for code, threshold in {
        "rows-left-out": f"above {reading_faults.TOLERATED:.0%}",
        "weights-degenerate": f"below {conditions.FEW_LEFT:.0%}",
        "mean-owned-by-few": f"own {limits.OWNED:.0%}",
        "too-few-clusters": f"below {conditions.FEW_CLUSTERS}",
        "drift-behind-small-steps": f"above {drifting.MANY:g} times",
    }.items():
        assert threshold in TELLING[code].test, code
