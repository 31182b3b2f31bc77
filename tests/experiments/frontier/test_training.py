from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.frontier.measure import LOG_Q, PROXY, TREE, place, table, tilted
from kullback.experiments.frontier.training import (
    BETA,
    EXACT,
    TABLE_Q,
    TERMS,
    Batch,
    answers,
    by_word,
    climbed,
    drawn,
    noise,
    of_reward,
    of_term,
    steadiest,
    stepped,
)

FAR = climbed("k1 in the reward")[40]
P = answers(FAR)
K1, K3, AUTO = "k1 in the reward", "k3 in the loss", "auto in the reward"


def slope(value, log_p, step=1e-5):
    """The derivative of a number of the policy in the logits that are moved."""
    places = np.random.default_rng(0).integers(log_p.size, size=12)
    found = []
    for at in places:
        ends = []
        for sign in (1, -1):
            logits = log_p.copy()
            logits.flat[at] += sign * step
            ends.append(value(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))))
        found.append((ends[0] - ends[1]) / (2 * step))
    return places, np.array(found)


@pytest.mark.parametrize("term", [K1, EXACT])
def test_k1_paid_and_rao_blackwell_descend_the_kl(term):
    places, expected = slope(lambda log_p: place(answers(log_p)).kl, FAR)
    assert of_term(term, FAR, Batch(P)).flat[places] == pytest.approx(expected, abs=1e-8)


def test_the_reward_climbs_the_proxy():
    places, expected = slope(lambda log_p: answers(log_p) @ PROXY, FAR)
    assert of_reward(FAR, Batch(P)).flat[places] == pytest.approx(expected, abs=1e-8)


def test_k3_in_the_loss_descends_the_other_direction_at_its_prefixes():
    visits = np.zeros(len(TABLE_Q))
    np.add.at(visits, TREE.context, P[:, None])

    def other(log_p):
        return visits @ np.sum(np.exp(TABLE_Q) * (TABLE_Q - log_p), axis=1)

    places, expected = slope(other, FAR)
    assert of_term(K3, FAR, Batch(P)).flat[places] == pytest.approx(expected, abs=1e-8)


def test_auto_as_a_reward_is_the_right_gradient_less_lambda_of_the_other():
    lam = steadiest(by_word(FAR) - LOG_Q, P)
    right, other = (of_term(term, FAR, Batch(P)) for term in (K1, K3))
    assert of_term(AUTO, FAR, Batch(P)) == pytest.approx(right - lam * other, abs=1e-12)
    assert 0 < lam < 1


def test_the_lambda_of_auto_varies_least():
    x = by_word(FAR) - LOG_Q
    best = steadiest(x, P)

    def variance(lam):
        values = kb.k_lambda(-x, lam).sum(axis=1)
        return P @ (values - P @ values) ** 2

    assert variance(best) < min(variance(best + step) for step in (-0.01, 0.01))


@pytest.mark.parametrize(
    ("term", "form", "gradient"),
    [(K1, "score", "sequence"), (K3, "k3", "token"), (EXACT, "rao_blackwell", "sequence")],
)
def test_of_drawn_answers_it_is_the_gradient_of_the_loss(term, form, gradient):
    torch = pytest.importorskip("torch")
    rows = np.random.default_rng(1).choice(len(P), size=16, p=P / P.sum())
    context, words = TREE.context[rows], TREE.tokens[rows]
    logits = torch.tensor(FAR, requires_grad=True)
    log_p, q = torch.log_softmax(logits, dim=-1), torch.tensor(TABLE_Q)
    exact = kb.exact(log_probs_p=log_p, log_probs_q=q)[context] if term == EXACT else None
    loss = kb.loss(
        log_p=log_p[context, words], log_q=q[context, words], exact=exact, form=form,
        gradient=gradient, aggregate="sequence_sum", biased=form == "k3",
    )  # fmt: skip
    (expected,) = torch.autograd.grad(loss, logits)
    share = np.bincount(rows, minlength=len(P)) / len(rows)
    without = Batch(share, known=np.zeros(len(P)))  # the loss has no baseline
    assert of_term(term, FAR, without) == pytest.approx(expected.numpy(), abs=1e-12)


@pytest.mark.parametrize("term", [K1, EXACT, K3])
def test_gradients_of_batches_scatter_around_the_expected_one(term):
    size, batches = 8, 2000
    share = np.random.default_rng(2).multinomial(size, P / P.sum(), size=batches) / size
    tables = np.broadcast_to(FAR, (batches, *FAR.shape))
    along = of_term(term, FAR, Batch(P))
    found = np.tensordot(of_term(term, tables, Batch(share, size)), along)
    z = (found.mean() - np.sum(along**2)) / (found.std(ddof=1) / np.sqrt(batches))
    assert abs(z) < 5


def test_at_the_best_policy_nothing_pulls():
    best = table(tilted(BETA))
    for term in (K1, EXACT):
        assert stepped(best, term, Batch(answers(best))) == pytest.approx(best, abs=1e-10)


def test_one_path_by_k1_and_by_rao_blackwell():
    assert climbed(K1)[:60] == pytest.approx(climbed(EXACT)[:60], abs=1e-9)


def test_noise_is_that_of_answers_drawn_one_by_one():
    each = noise(FAR, K1)
    share = np.random.default_rng(3).multinomial(1, P / P.sum(), size=4000).astype(float)
    tables = np.broadcast_to(FAR, (len(share), *FAR.shape))
    one = Batch(share, known=P)
    found = of_reward(tables, one) - BETA * of_term(K1, tables, one)
    squares = np.sum((found - found.mean(axis=0)) ** 2, axis=(1, 2))
    assert squares.mean() == pytest.approx(each, abs=5 * squares.std() / np.sqrt(len(share)))
    assert noise(FAR, None, 2.0) == pytest.approx(4 * noise(FAR, None))
    assert noise(FAR, K1, 0.0, 1.0) > 5 * noise(FAR, EXACT, 0.0, 1.0)


@pytest.mark.parametrize("term", [*TERMS, None])
def test_runs_that_learn_from_batches_stay_policies(term):
    runs = drawn(term, 2, 0)
    assert np.exp(runs).sum(axis=-1) == pytest.approx(1)
    assert np.all(runs[0] == TABLE_Q)
    assert np.any(runs[-1][0] != runs[-1][1])
