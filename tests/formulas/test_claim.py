"""A claim is a constant: what it says is proved in tests/laws."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from kullback.formulas import k_family, weights
from kullback.formulas.claim import UNSELECTED, Claim


def test_a_claim_cannot_be_changed() -> None:
    claim = Claim("KL(p||q)", "p", (), can_be_negative=True, expected_gradient="0")
    with pytest.raises(FrozenInstanceError):
        claim.sampler = "s"  # type: ignore[misc]
    assert not hasattr(claim, "__dict__")


def test_every_claim_is_conditional_on_the_draw() -> None:
    for name, claim in {**k_family.CLAIMS, **weights.CLAIMS}.items():
        assert UNSELECTED in claim.conditions
        assert any("fixed before the sample was drawn" in c for c in claim.conditions)
        assert claim.sampler == ("p" if name in k_family.CLAIMS else "s")
