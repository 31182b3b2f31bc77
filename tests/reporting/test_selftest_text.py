from __future__ import annotations

import pytest
from rich.console import Console

from kullback.diagnosis.finding import CODES
from kullback.reporting.selftest_text import print_selftest
from kullback.selftest.line import Line
from kullback.selftest.run import FAULTS, Selftest

TOLD = dict.fromkeys(CODES, 0)
MADE = Selftest(
    {
        "Formulas": (Line("k3", "passed", "6 numbers within 2e-16 (1e-12 allowed)"),),
        FAULTS: (
            Line(
                "wrong-sampler",
                "failed",
                "5 of 6: sampler-mismatch 2, negative-beyond-chance* 5, misaligned! 1",
                {"told": {**TOLD, "sampler-mismatch": 2, "misaligned": 1}},
            ),
            Line("stale", "not-reached", "no detector claims to see it", {"told": TOLD}),
        ),
    },
    {"kullback": "0.1.0", "numpy": "2.0"},
)


def printed(width: int) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        print_selftest(MADE, console)
    return captured.get()


@pytest.mark.parametrize("width", [80, 120])
def test_every_line_has_its_verdict_and_fits(width):
    lines = printed(width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0] == "kullback 0.1.0, numpy 2.0"
    for name, verdict in {
        "k3": "passed",
        "wrong-sampler": "failed",
        "stale": "not reached",
    }.items():
        [row] = [line for line in lines if line[13:].startswith(f"{name} ")]
        assert row[:13].strip() == verdict
    assert "failed: wrong-sampler." in " ".join(lines)


def test_codes_that_nothing_was_told_as_are_named():
    said = " ".join(printed(120).split())
    silent = said.partition("Told of none: ")[2].partition(".")[0].split(", ")
    accusing = {code for code, known in CODES.items() if known.accuses and known.of == "dump"}
    assert set(silent) == accusing - {"sampler-mismatch", "misaligned"}
