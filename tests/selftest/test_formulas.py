from __future__ import annotations

import pytest

from kullback.formulas import (
    categorical,
    divergences,
    gaussian,
    gaussian_shape,
    k_family,
    multivariate_gaussian,
    partial,
    shape,
    weights,
)
from kullback.selftest.formulas import CHECKS, formulas

# Each formula, and the lines that hold it; others may be made of it.
HELD = {
    (k_family, "k1"): {"k1", "truncated sampler"},
    (k_family, "k2"): {"k2"},
    (k_family, "k3"): {"k3", "other_direction", "truncated sampler"},
    (k_family, "k_lambda"): {"k_lambda"},
    (k_family, "other_direction"): {"other_direction"},
    (k_family, "f_form"): {"f_form"},
    (categorical, "exact"): {"exact", "truncated sampler"},
    (categorical, "entropy"): {"entropy"},
    (divergences, "divergence"): {"divergence (every kind)"},
    (gaussian, "kl"): {"Gaussians"},
    (gaussian, "chi2"): {"Gaussians"},
    (multivariate_gaussian, "kl"): {"Gaussians"},
    (weights, "control"): {"truncated sampler"},
    (weights, "weighted_k1"): {"truncated sampler"},
    (weights, "weighted_k3"): {"truncated sampler"},
    (partial, "lower_bound"): {"truncated sampler", "known heads"},
    (partial, "plain"): {"known heads"},
    (partial, "conditional"): {"known heads"},
    (partial, "biased_head"): {"known heads"},
    (partial, "biased_head_renormalized"): {"known heads"},
}


def test_all_hold():
    lines = formulas()
    assert [line.name for line in lines] == list(CHECKS)
    assert {line.verdict for line in lines} == {"passed"}
    assert max(line.numbers["largest_error"] for line in lines) < 1e-14


NAMES = [f"{home.__name__.rpartition('.')[2]}.{name}" for home, name in HELD]


@pytest.mark.parametrize(("home", "name"), HELD, ids=NAMES)
def test_a_billionth_too_much_of_a_formula_fails_its_lines(home, name, monkeypatch):
    right = getattr(home, name)
    monkeypatch.setattr(home, name, lambda *args, **named: (1 + 1e-9) * right(*args, **named))
    failed = {line.name for line in formulas() if line.verdict == "failed"}
    assert failed >= HELD[home, name]


@pytest.mark.parametrize("home", [shape, gaussian_shape])
def test_a_formula_that_cannot_run_fails(home, monkeypatch):
    def broken(*args, **named):
        raise FloatingPointError("underflow")

    monkeypatch.setattr(home, "shape", broken)
    [line] = [line for line in formulas() if line.verdict == "failed"]
    assert line.says == "FloatingPointError: underflow"
