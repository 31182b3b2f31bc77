"""Every estimator, level, weight and use of oracle d: named, and measured as mpmath has it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import kullback as kb
from kullback.audit import Gradient, Probe, Value
from kullback.audit.catalogue import Reading
from kullback.audit.forms import Form

torch = pytest.importorskip("torch")

ORACLE = json.loads(
    (Path(__file__).parents[1] / "oracles" / "d_tabular_autoregressive.json").read_text()
)
WHAT = ("sampler", "estimator", "level", "weight", "use")
ROWS = [
    pytest.param(kind, row, id=f"{kind}-{'-'.join(row[key] for key in WHAT)}".replace(" ", "_"))
    for kind in ORACLE
    for row in ORACLE[kind]["expected_gradients"]
]

FORMULAS = {
    "k1": lambda x: -x,
    "k2": lambda x: x**2 / 2,
    "k3": lambda x: torch.expm1(x) - x,
}
# What the oracle calls a gradient: what it is of, whether of whole sequences, whose prefixes.
NAMES = {
    "grad_KL_pi_ref": ("KL(current||reference)", "whole", None),
    "grad_KL_ref_pi": ("KL(reference||current)", "whole", None),
    "token_partial_rev_prefix_pi": ("KL(current||reference)", "token", "current"),
    "token_partial_fwd_prefix_pi": ("KL(reference||current)", "token", "current"),
    "token_partial_rev_prefix_mu": ("KL(current||reference)", "token", "old"),
    "token_partial_fwd_prefix_mu": ("KL(reference||current)", "token", "old"),
    "grad_E_pi_k2_sequence": ("E[(log current/reference)^2] / 2 of the sequence", "whole", None),
    "zero": ("zero", "whole", None),
}
SPANS = {"seq": "sequence", "token": "token", "prefix": "prefix"}


def weight_of(kind: str, current, old):
    """The factor of each token, or of the sequence."""
    span, _, attached = kind.partition("_")
    if kind == "none":
        return torch.ones_like(current)
    log = {
        "seq": lambda x: x.sum(-1, keepdim=True).expand_as(x),
        "token": lambda x: x,
        "prefix": lambda x: x.cumsum(-1),
    }[span](current - old)
    return log.exp() if attached == "attached" else log.exp().detach()


@cache
def probed(estimator: str, level: str, weight: str, style: str) -> Probe:
    formula = FORMULAS.get(estimator, FORMULAS["k1"])

    def loss(current, reference, old):
        x, w = reference - current, weight_of(weight, current, old)
        if level == "sequence":
            return (w[:, 0] * formula(x.sum(-1))).sum()
        return (w * formula(x)).sum()

    def reward(current, reference, old):
        return weight_of(weight, current, old) * formula(reference - current)

    def exactly(current, current_logits, reference_logits):
        log_p, log_q = current_logits.log_softmax(-1), reference_logits.log_softmax(-1)
        kl = (log_p.exp() * (log_p - log_q)).sum(-1)
        if level == "token_sum":
            return kl.sum()
        later = kl.flip(-1).cumsum(-1).flip(-1) - kl
        return (kl + later.detach() * current).sum()

    if estimator == "rao_blackwell":
        return kb.audit.probe(exactly)
    return kb.audit.probe(reward if style == "reward" else loss, style=style)


def form_of(of: Value | Reading | None) -> Form:
    assert of
    assert of.form
    return of.form


def found(kind: str, row: dict) -> tuple[Probe, Gradient]:
    use = row["use"].removeprefix("reward:") if row["use"].startswith("reward") else "loss"
    style = "loss" if use == "loss" else "reward"
    probe = probed(row["estimator"], row["level"], row["weight"], style)
    scenario = {"pi": "on-policy", "mu": "stale"}[row["sampler"]]
    return probe, probe.gradient(scenario, use, {"fixed": "fixed", "eos": "random"}[kind])


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_a_row_is_named_as_the_oracle_names_it(kind, row):
    _, gradient = found(kind, row)
    name = (gradient.of, gradient.part, gradient.prefixes)
    if row["equals"]:
        assert name in [NAMES[one] for one in row["equals"]]
        assert gradient.factor == pytest.approx(0.0 if gradient.of == "zero" else 1.0, abs=1e-9)
    else:
        assert name not in NAMES.values()


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_a_row_is_as_far_from_the_true_gradient_as_the_oracle_says(kind, row):
    _, gradient = found(kind, row)
    cosine, error = gradient.distances["KL(current||reference)"]
    assert cosine == pytest.approx(float(row["cos_with_true"]), abs=1e-12)
    assert error == pytest.approx(float(row["rel_err_to_true"]), abs=1e-12)


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_a_row_is_recognized_by_what_it_does(kind, row):
    probe, _ = found(kind, row)
    if row["estimator"] == "rao_blackwell":
        form = form_of(probe.derivative)
        assert (form.method, form.credit) == (
            "KL",
            "future" if row["level"] == "sequence" else None,
        )
        return
    form = form_of(probe.value)
    span, _, attached = row["weight"].partition("_")
    assert (form.method, form.p, form.q) == (row["estimator"], "current", "reference")
    assert probe.value.factor == pytest.approx(1.0)
    # Of k1 the sum over the sequence is the sum of the tokens'.
    assert form.unit == (
        "sequence" if row["level"] == "sequence" and form.method != "k1" else "token"
    )
    assert (form.weight.span if form.weight else "none") == SPANS.get(span, "none")
    if not probe.detached:
        assert probe.derivative
        assert probe.derivative.factor == pytest.approx(1.0)
        derivative = form_of(probe.derivative)
        assert derivative.method == row["estimator"]
        weight = derivative.weight
        assert (weight.attached if weight else "no") == ("yes" if attached == "attached" else "no")


def test_k1_differentiated_on_stale_tokens_drives_current_away_from_old():
    gradient = probed("k1", "token_sum", "none", "loss").gradient("stale")
    assert (gradient.of, gradient.factor) == ("KL(old||current)", pytest.approx(-1.0))
