from __future__ import annotations

import numpy as np
import pytest

from kullback.selftest.line import Line, attempted, compared


def test_the_largest_error_decides_and_arrays_count_by_their_numbers():
    right = compared("ones", [(np.ones(3), ["1.0"] * 3), (1.0, 1.0)])
    assert (right.verdict, right.numbers["compared"]) == ("passed", 4)
    wrong = compared("ones", [(np.ones(3), [1.0, 1.0, 1.0 + 1e-9]), (1.0, 1.0)])
    assert wrong.verdict == "failed"
    assert wrong.numbers["largest_error"] == pytest.approx(1e-9, rel=0.02)
    assert compared("ones", [(1.0, 1.0 + 1e-9)], allowed=1e-8).verdict == "passed"


def test_what_is_no_number_fails_wherever_it_stands():
    assert compared("a gap", [(np.nan, 1.0), (1.0, 1.0)]).verdict == "failed"
    assert compared("a gap", [(1.0, 1.0), (np.nan, 1.0)]).verdict == "failed"
    assert compared("too much", [(np.inf, 1.0)]).verdict == "failed"


def test_near_zero_an_error_is_absolute():
    assert compared("zero", [(1e-15, 0.0)]).verdict == "passed"
    assert compared("zero", [(1e-13, 0.0)]).verdict == "failed"


def test_nothing_is_said_as_0():
    assert compared("two", [([1.0, 2.0], [1.0, 2.0])], 0.0).says == "2 numbers within 0 (0 allowed)"


def test_a_check_that_cannot_run_has_failed_and_says_why():
    def check():
        raise ImportError("no such kernel")

    assert attempted("a check", check) == Line("a check", "failed", "ImportError: no such kernel")


def test_a_verdict_is_one_of_three():
    with pytest.raises(ValueError, match="none of passed, failed, not-reached"):
        Line("a check", "maybe", "")
