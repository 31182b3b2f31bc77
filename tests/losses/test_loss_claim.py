from __future__ import annotations

from itertools import product

import pytest

import kullback as kb
from kullback.losses.forms import CLAIMS, FORMS
from kullback.losses.loss_claim import WEIGHTS, loss_claim


def test_the_question_decides_the_weights():
    assert loss_claim().weights == "none"
    assert loss_claim(other_sampler=True).weights == "token"
    assert loss_claim(other_sampler=True, prefixes="p").weights == "prefix"
    assert loss_claim(other_sampler=True, gradient="sequence").weights == "prefix"
    assert loss_claim(other_sampler=True, gradient="sequence", form="k2").weights == "sequence"


def test_auto_is_never_biased():
    for learn, gradient, other, exact in product(
        "pq", ("token", "sequence"), (False, True), (False, True)
    ):
        claim = loss_claim(learn=learn, gradient=gradient, other_sampler=other, exact=exact)
        assert not claim.biased
        assert claim.gradient_of == "KL(p||q)"
        assert (claim.form == "rao_blackwell") == exact


@pytest.mark.parametrize("key", CLAIMS, ids="-".join)
def test_what_is_biased_says_why_and_of_what_it_is(key):
    learn, gradient, form = key
    claim = loss_claim(learn=learn, gradient=gradient, form=form, exact=form == "rao_blackwell")
    own = CLAIMS[key]
    assert claim.biased == (own.biased is not None) == (own.gradient_of != "KL(p||q)")
    assert not claim.wrong_value
    said = str(claim)
    assert "estimates KL(p||q)" in said
    assert (own.gradient_of if own.gradient_of != "0" else "zero in the mean") in said
    assert ("Biased: " in said) == claim.biased


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"other_sampler": True, "weights": "none"}, "tokens of another policy"),
        ({"other_sampler": True, "weights": "token", "prefixes": "p"}, "token weights leave"),
        ({"truncate": 2.0}, "weights above 2 count as 2"),
        ({"clamp": 10.0}, "beyond 10 count as 10"),
        ({"aggregate": "sequence_mean"}, "selects on the outcome"),
    ],
)
def test_what_spoils_the_value_too_is_said(options, reason):
    claim = loss_claim(**options)
    assert len(claim.wrong_value) == 1
    assert reason in claim.wrong_value[0]
    assert claim.wrong_value[0] in claim.wrong_gradient
    assert "does not estimate KL(p||q)" in str(claim)


REFUSED = [
    ({"learn": "current"}, "learn 'current' is none of p, q"),
    ({"gradient": "full"}, "is none of token, sequence"),
    ({"form": "k4"}, "is none of auto, k1"),
    ({"aggregate": "mean"}, "is none of token_mean"),
    ({"prefixes": "old"}, "is none of sampler, p"),
    ({"weights": "is", "other_sampler": True}, "is none of none, token"),
    ({"weights": "token"}, "take log_sampler="),
    ({"form": "rao_blackwell"}, "made of exact="),
    ({"form": "k2", "exact": True}, "no other form is"),
    ({"learn": "q", "form": "ratio_k3"}, "here q learns"),
    ({"gradient": "sequence", "prefixes": "sampler"}, "there is no score term"),
    ({"gradient": "sequence", "other_sampler": True, "weights": "token"}, "do not go with"),
    (
        {"gradient": "sequence", "form": "k2", "other_sampler": True, "weights": "prefix"},
        "do not go with",
    ),
    ({"other_sampler": True, "weights": "prefix"}, "say prefixes='p'"),
    ({"other_sampler": True, "weights": "sequence"}, "say prefixes='p'"),
    ({"truncate": 0.0}, "truncate is 0.0, expected a number above 0"),
    ({"clamp": float("nan")}, "expected a number above 0"),
    ({"gradient": "sequence", "aggregate": "sequence_mean"}, "take token_mean"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(ValueError, match=r".") as refused:
        kb.loss_claim(**options)
    assert message in str(refused.value)


def test_the_names_are_those_of_the_docstring():
    said = kb.loss.__doc__ or ""
    for name in (*FORMS, *WEIGHTS):
        assert name in said
