"""Claims of distillation say enough to be tested: a value, a slope, both ends or none."""

from __future__ import annotations

import dataclasses

import pytest

from kullback.losses import distill_terms, sampled_teacher, top_k_teacher
from kullback.losses.distill_claim import GIVEN

EVERY = {**distill_terms.CLAIMS, **top_k_teacher.CLAIMS, **sampled_teacher.CLAIMS}


@pytest.mark.parametrize("name", EVERY)
def test_a_claim_is_complete_and_fixed(name: str) -> None:
    claim = EVERY[name]
    assert claim.value
    assert claim.slope
    assert bool(claim.at_0) == bool(claim.at_1)
    assert set(claim.conditions) >= set(GIVEN)
    with pytest.raises(dataclasses.FrozenInstanceError):
        claim.value = "another"  # type: ignore[misc]
