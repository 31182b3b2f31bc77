from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.audit.catalogue import all_sequences, slope_table
from kullback.audit.forms import EXACT, Form, Weight, credited, slopes, values
from kullback.formulas.categorical import log_softmax

ROLES = ("current", "reference", "old", "rollout")
STEP = 1e-6
PLAIN = [
    Form("k1", "current", "reference"),
    Form("k2", "reference", "current"),
    Form("k3", "current", "reference"),
    Form("k3", "current", "reference", "sequence"),
    Form("k3", "old", "current", "average"),
    Form("r log r - (r - 1)", "current", "old"),
    Form("r log r", "reference", "current"),
    Form("r", "current", "old"),
    Form("exp(x) - x", "current", "reference"),
    Form("p log p/q", "current", "reference"),
    Form("p log p/q", "reference", "current"),
    Form("log-prob", "current", "current"),
    *[
        Form("k3", "current", "reference", scale=name)
        for name in ("bits", "probabilities", "ratios")
    ],
    *[Form(name, *pair) for name in EXACT for pair in (("current", "old"), ("old", "current"))],
]
ATTACHED = [
    Form(method, "current", "reference", unit, weight=Weight("current", "old", span, "yes"))
    for method in ("k1", "k2", "k3")
    for unit, spans in (
        ("token", ("token", "prefix", "sequence", "average")),
        ("sequence", ("sequence", "average")),
    )
    for span in spans
] + [
    Form("k2", "current", "reference", weight=Weight("old", "current", "prefix", "yes")),
    Form("KL", "current", "reference", weight=Weight("current", "old", "sequence", "yes")),
]


def total(form, batch):
    found = values(form, batch)
    return found.sum(axis=1) if found.ndim == 2 else found


def moved(batch, place, token, step):
    """The batch after a step of one logit of the current policy."""
    current = batch.log_probs["current"].copy()
    current[:, place, token] += step
    dead = ~batch.mask[..., None]
    tables = {**batch.log_probs, "current": np.where(dead, 0.0, log_softmax(current))}
    return replace(batch, log_probs=tables)


@pytest.mark.parametrize("form", PLAIN + ATTACHED, ids=str)
def test_slopes_are_the_derivatives_of_the_values(form):
    batch = all_sequences()
    held = batch.log_probs["current"]
    found = slopes(form, batch)
    for place, token in ((0, 0), (1, 2), (2, 1)):
        sides = [total(form, moved(batch, place, token, step)) for step in (STEP, -STEP)]
        expected = (sides[0] - sides[1]) / (2 * STEP)
        assert np.allclose(found[:, place, token], expected, atol=1e-7)
    assert batch.log_probs["current"] is held


@pytest.mark.parametrize("span", ["token", "prefix", "sequence", "average"])
def test_a_weight_held_constant_multiplies_the_derivative(span):
    batch = all_sequences()
    plain = Form("k3", "current", "reference")
    weighted = replace(plain, weight=Weight("current", "old", span))
    slope = [slopes(form, batch)[batch.mask][:, 0] for form in (weighted, plain)]
    value = [values(form, batch)[batch.mask] for form in (weighted, plain)]
    assert np.allclose(slope[0] * value[1], slope[1] * value[0])


def test_its_own_ratio_is_one_and_adds_the_value_to_the_slope():
    batch = all_sequences()
    own = Form("k3", "current", "reference", weight=Weight("current", "itself", "token", "yes"))
    assert np.array_equal(values(own, batch), values(replace(own, weight=None), batch))
    # k3 times its own attached ratio and k2 have one derivative: that is why it is right.
    assert np.allclose(slopes(own, batch), slopes(Form("k2", "current", "reference"), batch))


def test_a_cost_beside_the_log_prob_is_k2_if_credit_is_immediate():
    batch = all_sequences()
    cost = Form("k1", "current", "reference", credit="immediate")
    assert np.allclose(slopes(cost, batch), slopes(Form("k2", "current", "reference"), batch))


def test_credit():
    costs = np.array([[1.0, 2.0, 4.0]])
    assert credited(costs, "full_return").tolist() == [[7.0, 7.0, 7.0]]
    assert credited(costs, "future").tolist() == [[6.0, 4.0, 0.0]]
    assert credited(costs, "immediate").tolist() == [[1.0, 2.0, 4.0]]


def test_nothing_is_given_past_an_end():
    batch = all_sequences()
    for form in slope_table(ROLES, logits=True).forms:
        found = values(form, batch)
        assert found.ndim == 1 or not np.any(found[~batch.mask])
        assert not np.any(slopes(form, batch)[~batch.mask])
