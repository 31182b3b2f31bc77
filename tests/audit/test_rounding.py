from __future__ import annotations

import numpy as np
import pytest

from kullback.audit.calling import Caller
from kullback.audit.forms import Form
from kullback.audit.roles import parameters
from kullback.audit.rounding import of_float32
from kullback.audit.scenes import APART, sequence, staged, together

TRIAL = together([sequence(staged(APART.name, ends=True), row) for row in (0, 1)])
K3 = Form("k3", "current", "reference")


def told(fn, library="numpy", form=K3):
    return " ".join(of_float32(Caller(fn, parameters(fn, None), library, TRIAL), form, 1.0))


def test_digits_that_cancel():
    naive = told(lambda current, reference: np.exp(reference - current) - 1 - (reference - current))
    assert "off by" in naive
    assert "k3 is expm1(x) - x" in naive
    good = told(
        lambda current, reference: (
            np.expm1(np.minimum(reference - current, 80)) - np.minimum(reference - current, 80)
        )
    )
    assert good == ""
    upcast = told(
        lambda current, reference: (
            np.exp(np.float64(reference - current)) - 1 - np.float64(reference - current)
        )
    )
    assert "off by" not in upcast


def test_values_that_overflow():
    said = told(lambda current, reference: np.expm1(reference - current) - (reference - current))
    assert said == "In float32 its value is not finite where reference/current is above e^88."


def test_a_clamp_after_the_exponential_leaves_no_gradient_but_nan():
    torch = pytest.importorskip("torch")

    def after(current, reference):
        x = reference - current
        return (torch.expm1(x) - x).clamp(max=10)

    def before(current, reference):
        x = (reference - current).clamp(max=20)
        return (torch.expm1(x) - x).clamp(max=10)

    assert "gradient is not finite where reference/current is above e^88" in told(after, "torch")
    assert told(before, "torch") == ""


def test_sums_over_a_vocabulary_are_not_looked_at():
    fn = lambda current, reference: current - reference  # noqa: E731
    assert told(fn, form=Form("KL", "current", "reference")) == ""
