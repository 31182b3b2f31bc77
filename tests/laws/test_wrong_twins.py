"""Every wrong twin breaks the laws it is said to break, and the right formula obeys them."""

from __future__ import annotations

import pytest

from .wrong_twins import LAWS, WRONG_TWINS

CHARGES = [(name, law) for name, twin in WRONG_TWINS.items() for law in twin.breaks]
# Several twins may have one right formula, which a law need clear but once.
ALIBIS = {(law, WRONG_TWINS[name].right): (name, law) for name, law in CHARGES}.values()


@pytest.mark.parametrize(("name", "law"), CHARGES)
def test_law_convicts_the_wrong_twin(name: str, law: str) -> None:
    assert not LAWS[law](WRONG_TWINS[name].wrong)


@pytest.mark.parametrize(("name", "law"), ALIBIS)
def test_law_clears_the_right_formula(name: str, law: str) -> None:
    assert LAWS[law](WRONG_TWINS[name].right)


def test_each_law_convicts_somebody() -> None:
    assert {law for _, law in CHARGES} == LAWS.keys()
