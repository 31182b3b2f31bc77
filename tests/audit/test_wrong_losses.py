"""Each wrong term is named for what it is, and each right one as right."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import kullback as kb

from .wrong_losses import RIGHT, WRONG, Case

CASES = {f"wrong: {name}": case for name, case in WRONG.items()} | {
    f"right: {name}": case for name, case in RIGHT.items()
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_term_is_named_for_what_it_is(case: Case):
    found = kb.audit.probe(case.function, style=case.style)
    form = found.value.form
    if case.value is None:
        assert form is None or form.method not in ("k1", "k2", "k3")
    else:
        assert form is not None
        assert (form.method, form.p, form.q) == case.value
        assert found.value.factor == pytest.approx(case.factor)
        for name, expected in case.also.items():
            assert getattr(form, name) == expected
    assert case.level in (None, found.value.aggregation.level)
    for (scenario, use), expected in case.gradients.items():
        gradient = found.gradient(scenario, use)
        of, part, factor = (*(expected or (None, None)), None, None)[:3]
        assert (gradient.of, gradient.part) == (of, part)
        if of not in (None, "zero"):
            assert gradient.factor == pytest.approx(1.0 if factor is None else factor)
    assert found.is_kl == case.is_kl
    text = " ".join(str(found).split())
    for words in case.says:
        assert words in text


def test_wrong_and_right_ones_are_many():
    assert len(WRONG) >= 25
    assert len(RIGHT) >= 8
