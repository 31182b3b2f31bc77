from __future__ import annotations

import numpy as np
import pytest

import kullback as kb

torch = pytest.importorskip("torch")


def k2(current, reference):
    return (current - reference) ** 2 / 2


def masked(current, reference, mask):
    return k2(torch.where(mask, current, 0.0), torch.where(mask, reference, 0.0)).sum() / mask.sum()


WARNED = {
    "an idle argument": (
        lambda current, reference, old: k2(current, reference),
        "not depend on old",
    ),
    "a leak": (lambda current, reference, mask: k2(current, reference).mean(), "masked positions"),
    "infinities": (
        lambda current, reference, mask: (k2(current, reference) * mask).sum() / mask.sum(),
        "value is not finite where a masked position holds -inf",
    ),
    "a sum": (lambda current, reference: k2(current, reference).sum(), "grows with the number"),
    "padding": (
        lambda current, reference, mask: (k2(current, reference) * mask).mean(),
        "shrinks with the padding",
    ),
    "no rule": (lambda current, reference: k2(current, reference).max(), "not made of"),
    "a mean of means": (
        lambda current, reference, mask: (
            (k2(current, reference) * mask).sum(-1) / mask.sum(-1)
        ).mean(),
        "weighs a token by the length",
    ),
    "a clamp": (
        lambda current, reference: (current - reference).clamp(-5, 5),
        "Beyond its clamp it has no gradient",
    ),
    "a tail": (
        lambda current, reference: torch.where(
            (current - reference).abs() > 5, 0.1 * (current - reference), current - reference
        ),
        "not its formula where the log-ratio is 8, 16, 37, 38",
    ),
    "identity": (
        lambda current, reference: (reference - current).exp() - (reference - current),
        "Where all policies agree it is 1 and not 0",
    ),
}


@pytest.mark.parametrize("name", WARNED)
def test_what_is_warned_of(name):
    fn, told = WARNED[name]
    assert any(told in one for one in kb.audit.probe(fn).warnings)


def test_a_clean_term_has_no_warning():
    assert kb.audit.probe(masked).warnings == ()


def test_what_jax_could_not_trace():
    pytest.importorskip("jax")
    found = kb.audit.probe(
        lambda current, reference: np.asarray(current) - np.asarray(reference), library="jax"
    )
    assert any("JAX could not trace it" in one for one in found.warnings)
