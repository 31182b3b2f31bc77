from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.arrays import to_numpy
from kullback.losses.penalty import CLAIMS

from .enumerated import WORLDS, Language

LOG_P: Any = np.array([[-1.0, -2.0, -0.5], [-3.0, -0.25, np.nan]])
LOG_Q: Any = np.array([[-1.5, -1.0, -0.75], [-2.0, -0.5, np.inf]])
MASK: Any = np.array([[1, 1, 1], [1, 1, 0]])
K1 = np.array([[0.5, -1.0, 0.25], [-1.0, 0.25, 0.0]])


def test_a_penalty_is_k1_and_a_constant(traceable):
    log_p, log_q, mask = (traceable.array(one) for one in (LOG_P, LOG_Q, MASK))
    assert to_numpy(kb.penalty(log_p=log_p, log_q=log_q, mask=mask), "").tolist() == K1.tolist()
    (slope,) = traceable.gradient(
        lambda one: kb.penalty(log_p=one, log_q=log_q, mask=mask).sum() + one[0, 0]
    )(log_p)
    assert to_numpy(slope, "").tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_an_advantage_is_a_constant_and_what_comes_later_counts_if_asked(library):
    log_p, log_q, mask = (library.array(one) for one in (LOG_P, LOG_Q, MASK))
    logs: dict[str, Any] = {"log_p": log_p, "log_q": log_q, "mask": mask}
    assert to_numpy(kb.advantage(**logs), "").tolist() == (-K1).tolist()
    to_go = -K1[:, ::-1].cumsum(1)[:, ::-1] * MASK
    assert to_numpy(kb.advantage(**logs, gradient="sequence"), "").tolist() == to_go.tolist()
    baseline = library.array(np.where(MASK, 0.5, np.nan))
    found = to_numpy(kb.advantage(**logs, exact=baseline), "")
    assert found.tolist() == ((0.5 - K1) * MASK).tolist()


def test_packed_rows_have_the_advantage_of_padded_ones():
    to_go = kb.advantage(log_p=LOG_P, log_q=LOG_Q, mask=MASK, gradient="sequence")
    flat: dict[str, Any] = {"log_p": LOG_P[MASK == 1], "log_q": LOG_Q[MASK == 1]}
    packed = kb.advantage(**flat, lengths=[3, 2], gradient="sequence")
    assert packed.tolist() == to_go[MASK == 1].tolist()


def test_the_baseline_of_heads_is_the_kl_of_the_head_and_one_bucket():
    top_p, top_q = np.log([[[0.5, 0.3]]]), np.log([[[0.25, 0.3]]])
    logs: dict[str, Any] = {"log_p": np.log([[0.5]]), "log_q": np.log([[0.25]])}
    found = kb.advantage(**logs, top_log_p=top_p, top_log_q=top_q)
    bound = 0.5 * np.log(2) + 0.2 * np.log(0.2 / 0.45)
    assert float(found[0, 0]) == pytest.approx(bound - np.log(2), rel=1e-12)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("credit", ["token", "sequence"])
@pytest.mark.parametrize("form", CLAIMS)
def test_the_policy_gradient_of_a_reward_is_the_one_that_is_claimed(form, credit, name):
    torch = pytest.importorskip("torch")
    lang = Language(WORLDS[name])
    p, q = lang.by_token("current"), lang.by_token("reference")
    exact = lang.along(lang.kl("current", "reference"))
    terms = kb.penalty(
        log_p=p, log_q=q, mask=lang.alive, form=form, biased=True,
        **({"exact": exact} if form == "exact" else {}),
    )  # fmt: skip
    if credit == "sequence":
        terms = terms.flip(-1).cumsum(-1).flip(-1)
    weight = lang.probability("current").detach()
    found = lang.slope((weight * (terms * p).sum(-1)).sum())
    contexts = {
        "KL(p||q)": lang.kl("current", "reference"),
        "KL(q||p)": lang.kl("reference", "current"),
        "E_p[x^2] / 2": lang.square("current", "reference"),
    }
    claim = CLAIMS[form]
    plus = contexts[claim.plus]
    truth = (
        lang.expected(lang.along(plus).sum(-1), "current")
        if credit == "sequence"
        else lang.at_prefixes(plus, "current")
    )
    if claim.minus:
        truth = truth - lang.at_prefixes(contexts[claim.minus], "current")
    assert np.abs(found - lang.slope(truth)).max() <= 1e-12
    assert torch.equal(terms, terms.detach())


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("gradient", ["token", "sequence"])
@pytest.mark.parametrize("baseline", ["none", "exact", "head"])
def test_the_policy_gradient_of_an_advantage_descends_the_kl(baseline, gradient, name):
    pytest.importorskip("torch")
    lang = Language(WORLDS[name])
    p, q = lang.by_token("current"), lang.by_token("reference")
    kl = lang.kl("current", "reference")
    top = [lang.table(role)[lang.world.tree.context][..., :2] for role in ("current", "reference")]
    options: dict[str, Any] = {
        "none": {},
        "exact": {"exact": lang.along(kl)},
        "head": {"top_log_p": top[0], "top_log_q": top[1]},
    }[baseline]
    a = kb.advantage(log_p=p, log_q=q, mask=lang.alive, gradient=gradient, **options)
    weight = lang.probability("current").detach()
    found = lang.slope(-(weight * (a * p).sum(-1)).sum())
    truth = (
        lang.expected((p - q).sum(-1), "current")
        if gradient == "sequence"
        else lang.at_prefixes(kl, "current")
    )
    assert np.abs(found - lang.slope(truth)).max() <= 1e-12


REFUSED = [
    (kb.penalty, {"form": "auto"}, "auto is an estimate"),
    (kb.advantage, {"form": "auto"}, "auto is an estimate"),
    (kb.penalty, {"form": "k3"}, r"descends KL\(p\|\|q\) less KL\(q\|\|p\).*biased=True"),
    (kb.advantage, {"form": "k2"}, "take k1, or biased=True"),
    (kb.penalty, {"form": "k4"}, "is none of k1, k2"),
    (kb.penalty, {"exact": K1}, "takes exact="),
    (kb.penalty, {"form": "exact", "biased": True}, "takes exact="),
    (kb.penalty, {"form": "exact", "biased": True, "exact": K1[:, :2]}, r"shape \(2, 2\)"),
    (kb.advantage, {"exact": K1[0]}, r"shape \(3,\), the tokens \(2, 3\)"),
    (kb.advantage, {"form": "exact"}, "is a baseline here"),
    (kb.advantage, {"gradient": "both"}, "is none of token, sequence"),
    (kb.advantage, {"top_log_p": K1}, "give one baseline"),
    (kb.advantage, {"exact": K1, "top_log_p": K1, "top_log_q": K1}, "give one baseline"),
]


@pytest.mark.parametrize(("function", "options", "message"), REFUSED)
def test_what_is_no_unbiased_penalty_is_refused_with_the_reason(function, options, message):
    with pytest.raises(ValueError, match=message):
        function(log_p=LOG_P, log_q=LOG_Q, mask=MASK, **options)


def test_flat_values_without_lengths_have_nothing_that_comes_later():
    with pytest.raises(ValueError, match="flat values and lengths"):
        kb.advantage(log_p=LOG_P[0], log_q=LOG_Q[0], gradient="sequence")
