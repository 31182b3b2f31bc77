from __future__ import annotations

import pytest

from kullback.formulas import k_family
from kullback.losses import loss
from kullback.selftest import libraries as checked
from kullback.selftest.line import ALLOWED, SMALL, Line


def test_what_is_not_installed_is_not_reached(monkeypatch):
    monkeypatch.setattr(checked, "find_spec", lambda name: None)
    assert checked.libraries() == (
        Line("torch", "not-reached", "not installed"),
        Line("jax", "not-reached", "not installed"),
    )


@pytest.fixture(params=["torch", "jax"])
def name(request, monkeypatch):
    pytest.importorskip(request.param)
    monkeypatch.setattr(checked, "LIBRARIES", {request.param: checked.LIBRARIES[request.param]})
    return request.param


def test_formulas_and_the_gradient_of_a_loss_hold(name):
    values, gradient = checked.libraries()
    assert (values.name, gradient.name) == (f"k1 to k3 ({name})", f"kb.loss gradient ({name})")
    assert (values.verdict, gradient.verdict) == ("passed", "passed")
    assert gradient.numbers["compared"] == 21
    assert gradient.numbers["allowed"] == (ALLOWED if name == "torch" else checked.SINGLE)
    assert SMALL * checked.SINGLE < 1e-6


def test_a_wrong_formula_and_a_wrong_gradient_fail(name, monkeypatch):
    right = loss.loss
    monkeypatch.setattr(k_family, "k3", k_family.k2)
    monkeypatch.setattr(loss, "loss", lambda **named: right(**{**named, "gradient": "token"}))
    assert [line.verdict for line in checked.libraries()] == ["failed", "failed"]
