from __future__ import annotations

import pytest

from kullback.explaining.estimators import ESTIMATORS
from kullback.explaining.metrics import explain_metric
from kullback.explaining.trust import TRUST
from kullback.formulas.claim import Claim

ALL = ESTIMATORS | TRUST
SAID = {name: explain_metric(name) for name in ALL}
LABELS = ("Means", "Formula", "Unbiased", "Negative?", "Blind to", "Example")


@pytest.mark.parametrize("name", ALL)
def test_every_number_is_explained_on_one_screen(name):
    said = SAID[name]
    assert tuple(section.label for section in said.sections) == LABELS
    assert all(section.text for section in said.sections)
    assert 15 <= len(said.lines(80)) <= 40


@pytest.mark.parametrize("name", ALL)
def test_every_line_fits_eighty_columns(name):
    assert max(map(len, SAID[name].lines(80))) <= 80


@pytest.mark.parametrize(
    "name", [name for name, one in ALL.items() if isinstance(one.unbiased, Claim)]
)
def test_what_is_claimed_is_the_claim_that_is_proved(name):
    claim = ALL[name].unbiased
    assert isinstance(claim, Claim)
    said = dict(SAID[name].sections)
    assert said["Unbiased"].startswith(f"For {claim.unbiased_for}, over tokens that")
    assert [line[4:] for line in said["Unbiased"].splitlines() if line.startswith("  - ")] == list(
        claim.conditions
    )
    assert (claim.mean_without_support or "Where") in said["Unbiased"] + "Where"
    assert said["Negative?"].startswith("A single term can") == claim.can_be_negative


def test_the_claims_are_of_the_estimators_and_of_the_control():
    claimed = {name for name, one in ALL.items() if isinstance(one.unbiased, Claim)}
    assert claimed == {"kl", "k1", "k2", "k3", "k_lambda", "partial", "missing-mass"}


@pytest.mark.parametrize("name", ALL)
def test_the_numbers_are_those_of_the_text(name):
    """The first number of an example stands in its text, in some of its digits."""
    first = abs(next(iter(SAID[name].numbers.values())))
    shown = {f"{first:.{digits}f}" for digits in (1, 2, 3, 4)} | {f"{first:.1%}"}
    assert any(one in SAID[name].text for one in shown)
