"""Each wrong term is named for what it is, and each right one as right."""

from __future__ import annotations

import pytest

from .cases import Case, check

pytest.importorskip("torch")

from .wrong_losses import RIGHT, WRONG

CASES = {f"wrong: {name}": case for name, case in WRONG.items()} | {
    f"right: {name}": case for name, case in RIGHT.items()
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_term_is_named_for_what_it_is(case: Case):
    check(case)


def test_wrong_and_right_ones_are_many():
    assert len(WRONG) >= 25
    assert len(RIGHT) >= 8
