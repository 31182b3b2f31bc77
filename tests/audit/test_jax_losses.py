"""Terms written in JAX are named as those in torch are."""

from __future__ import annotations

import pytest

from .cases import Case, check

pytest.importorskip("jax")

from .jax_losses import CASES


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_term_is_named_for_what_it_is(case: Case):
    check(case)
