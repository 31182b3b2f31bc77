from __future__ import annotations

from kullback.diagnosis.finding import CODES
from kullback.explaining.log_examples import log_example


def test_every_code_of_step_logs_has_an_example_and_a_twin():
    for code, said in CODES.items():
        shown = log_example(code)
        if said.of == "log":
            assert shown is not None
            assert shown.finding(code).code == code
            assert code not in {one.code for one in shown.twin.findings}


def test_other_codes_have_examples_of_their_own():
    assert log_example("misaligned") is None
