"""The numbers that travel with the package are the oracles' own, digit by digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kullback.selftest import oracles

ORACLES = Path(__file__).parents[1] / "oracles"
FAMILIES = json.loads(Path(oracles.__file__).with_suffix(".json").read_text(encoding="utf-8"))


def is_part(some, of) -> bool:
    """Whether it is what it is a part of, with some names and some members left out."""
    if isinstance(some, dict):
        return all(name in of and is_part(one, of[name]) for name, one in some.items())
    if isinstance(some, list):
        return all(any(is_part(one, other) for other in of) for one in some)
    return some == of


@pytest.mark.parametrize("family", FAMILIES)
def test_every_number_is_a_copy(family):
    whole = json.loads((ORACLES / f"{family}.json").read_text(encoding="utf-8"))
    assert oracles.oracle(family)
    assert is_part(oracles.oracle(family), whole)


def test_a_changed_digit_would_be_seen():
    whole = json.loads((ORACLES / "g_gaussians.json").read_text(encoding="utf-8"))
    some = json.loads(json.dumps(oracles.oracle("g_gaussians")))
    some["univariate"][0]["KL_pq"] = some["univariate"][0]["KL_pq"][:-1] + "1"
    assert not is_part(some, whole)


def test_decimals_become_doubles():
    assert oracles.floats(["0.1", "0.25"]).tolist() == [0.1, 0.25]
