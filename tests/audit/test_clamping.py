from __future__ import annotations

import numpy as np
import pytest

from kullback.audit.calling import Caller
from kullback.audit.clamping import clamps, departures
from kullback.audit.forms import Form, Weight
from kullback.audit.roles import parameters
from kullback.audit.scenes import APART, sequence, staged, together

TRIAL = together([sequence(staged(APART.name, ends=True), row) for row in (0, 1)])
K1, K3 = Form("k1", "current", "reference"), Form("k3", "current", "reference")


def caller(fn, library="numpy"):
    return Caller(fn, parameters(fn, None), library, TRIAL)


def k3(x):
    return np.expm1(x) - x


def held(fn, form=K3, factor=1.0, library="numpy"):
    made = caller(fn, library)
    found = clamps(made, form, factor)
    return found, departures(made, form, factor, found)


def test_no_clamp():
    assert held(lambda current, reference: k3(reference - current)) == ((), ())
    assert held(lambda current, reference: current - reference, K1) == ((), ())


@pytest.mark.parametrize("factor", [1.0, -1.0, 0.25])
def test_the_output_clamped_at_10(factor):
    found, odd = held(
        lambda current, reference: factor * np.minimum(k3(reference - current), 10), factor=factor
    )
    assert [(one.of, one.at) for one in found] == [("output", 10.0), ("output", 10.0)]
    assert np.exp(found[0].log_ratio) == pytest.approx(13.611, abs=1e-3)
    assert found[1].log_ratio == pytest.approx(-11, abs=1e-4)
    assert odd == ()


def test_the_log_ratio_clamped_at_20():
    found, odd = held(lambda current, reference: k3(np.clip(reference - current, -20, 20)))
    assert [(one.of, one.at) for one in found] == [("input", 20.0), ("input", -20.0)]
    assert odd == ()


def test_one_side_clamped():
    found, _ = held(lambda current, reference: np.maximum(current - reference, -5.0), K1)
    assert [(one.of, one.at, one.log_ratio) for one in found] == [
        ("output", -5.0, pytest.approx(5.0))
    ]


def test_a_clamped_weight():
    form = Form("k2", "current", "reference", weight=Weight("current", "old", "token"))
    found, _ = held(
        lambda current, reference, old: (
            np.clip(np.exp(current - old), 0.1, 8) * (current - reference) ** 2 / 2
        ),
        form,
    )
    assert [(one.of, one.at) for one in found] == [("weight", 8.0), ("weight", 0.1)]


def test_whether_a_gradient_is_left():
    torch = pytest.importorskip("torch")

    def dead(current, reference):
        return torch.clamp((reference - current).exp() - 1 - (reference - current), max=10.0)

    def alive(current, reference):
        value = dead(current, reference)
        return value + ((current - reference) - (current - reference).detach())

    assert [one.gradient for one in held(dead, library="torch")[0]] == [False, False]
    assert [one.gradient for one in held(alive, library="torch")[0]] == [True, True]


def test_what_is_neither_its_formula_nor_constant_is_told():
    found, odd = held(
        lambda current, reference: np.where(
            reference - current > 5, reference - current, k3(reference - current)
        )
    )
    assert found == ()
    assert odd == (8.0, 16.0, 37.0, 38.0)


def test_only_terms_of_sampled_tokens_have_tails():
    made = caller(lambda current, reference: current - reference)
    assert clamps(made, Form("KL", "current", "reference"), 1.0) == ()
    assert clamps(made, Form("k3", "current", "old"), 1.0) == ()
    assert departures(made, Form("log-prob", "current", "current"), 1.0, ()) == ()


def test_a_clamp_as_data():
    found, _ = held(lambda current, reference: np.minimum(k3(reference - current), 10))
    assert found[0].as_data()["of"] == "output"
