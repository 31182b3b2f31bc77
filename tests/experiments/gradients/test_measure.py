from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.gradients import measure
from kullback.experiments.gradients.measure import FORMS, WORLD, Term, arrow, at, expected

ORACLE = json.loads(
    (Path(__file__).parents[2] / "oracles" / "d_tabular_autoregressive.json").read_text()
)["fixed"]
SAMPLERS = {"pi": "current", "mu": "old"}


def term_of(row):
    """A row of the oracle as a term, where it is one of ours."""
    span, _, attached = row["weight"].partition("_")
    weight = {"none": None, "seq": "sequence", "token": "token"}.get(span, "prefix")
    if row["estimator"] not in FORMS or weight == "prefix":
        return None
    if row["use"].startswith("reward"):
        ours = row["use"] == "reward:reward_to_go" and row["weight"] == "none"
        return Term(row["estimator"], "reward") if ours else None
    of = {"sequence": "sequence", "token_sum": "token"}[row["level"]]
    return Term(row["estimator"], "loss", of, weight, attached == "attached")


ROWS = [row for row in ORACLE["expected_gradients"] if term_of(row)]


def test_most_of_the_oracle_is_ours():
    assert len(ROWS) == 36


@pytest.mark.parametrize("row", ROWS)
def test_gradients_are_those_of_34_digits(row):
    term, sampler = term_of(row), SAMPLERS[row["sampler"]]
    assert term
    found = expected(term, WORLD, sampler)
    truth = np.array(row["expected_gradient"], dtype=np.float64).reshape(found.shape)
    assert found == pytest.approx(truth, abs=1e-12)
    one = arrow(term, WORLD, sampler)
    assert one.error == pytest.approx(float(row["rel_err_to_true"]), abs=1e-11)
    assert (one.cosine or 0.0) == pytest.approx(float(row["cos_with_true"]), abs=1e-11)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sampler", ["current", "old"])
def test_gradients_are_those_of_kb_loss(form, sampler):
    torch = pytest.importorskip("torch")
    _, token, context, _ = (torch.tensor(one) if i else one for i, one in enumerate(WORLD.tree))
    logits = torch.tensor(WORLD.log_probs["current"], requires_grad=True)
    log_p = logits.log_softmax(-1)[context, token]
    log_q, log_s = (torch.tensor(WORLD.by_token(role)) for role in ("reference", sampler))
    off = {"log_sampler": log_s, "weights": "none"} if sampler == "old" else {}
    loss = [
        kb.loss(log_p=log_p[i : i + 1], log_q=log_q[i : i + 1], form=form, biased=True,
                mask=torch.ones_like(log_p[:1], dtype=torch.bool), aggregate="sequence_sum",
                **{key: one[i : i + 1] if key == "log_sampler" else one
                   for key, one in off.items()})
        for i in range(len(log_p))
    ]  # fmt: skip
    mean = torch.tensor(WORLD.probability(sampler)) @ torch.stack(loss)
    found = torch.autograd.grad(mean, logits)[0].numpy()
    assert expected(Term(form), WORLD, sampler) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("part", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("form", ["k1", "k3"])
@pytest.mark.parametrize("of", ["token", "sequence"])
def test_of_an_unbiased_form_loss_and_reward_add_up_to_the_true_gradient(form, of, part):
    both = sum(expected(Term(form, use, of), at(part)) for use in ("loss", "reward"))
    assert both == pytest.approx(expected(measure.TRUE, at(part)), abs=1e-12)


def test_of_a_biased_form_they_do_not():
    both = sum(expected(Term("k2", use), WORLD) for use in ("loss", "reward"))
    assert np.abs(both - expected(measure.TRUE, WORLD)).max() > 0.01


def test_without_a_weight_k1_pushes_away_from_the_sampler():
    """Minus the gradient of KL(old||p), by differences."""
    found, table = expected(Term("k1"), WORLD, "old"), WORLD.log_probs["current"]
    for place in ((0, 0), (3, 1), (12, 2)):
        ends = []
        for step in (1e-5, -1e-5):
            moved = table.copy()
            moved[place] += step
            moved -= np.log(np.exp(moved).sum(axis=-1, keepdims=True))
            world = kb.worlds.Tabular({**WORLD.log_probs, "current": moved}, "current", 3)
            ends.append(measure.kl(world, "old", "current"))
        assert found[place] == pytest.approx(-(ends[0] - ends[1]) / 2e-5, abs=1e-9)


def test_the_reference_moves_from_the_policy_to_where_it_was():
    assert at(1.0).log_probs["reference"] == pytest.approx(WORLD.log_probs["reference"])
    kls = [measure.kl(at(part)) for part in measure.STEPS]
    assert kls == sorted(kls)
    assert kls[0] < 3e-4
    assert kls[-1] == pytest.approx(float(ORACLE["KL_pi_ref"]), rel=1e-12)


def test_an_arrow_has_the_length_the_angle_and_the_error_of_the_gradient():
    true, found = expected(measure.TRUE, WORLD), expected(Term("k3"), WORLD)
    size, one = np.linalg.norm(true), arrow(Term("k3"), WORLD)
    assert one.length == pytest.approx(np.linalg.norm(found) / size, rel=1e-10)
    cosine = np.sum(true * found) / np.linalg.norm(found) / size
    assert one.cosine == pytest.approx(cosine, rel=1e-10)
    assert one.error == pytest.approx(np.linalg.norm(found - true) / size, rel=1e-10)
    nothing = arrow(Term("k1"), WORLD)
    assert (nothing.length, nothing.cosine, nothing.error) == (0.0, None, 1.0)
