from __future__ import annotations

import math

import pytest

from kullback.audit.aggregating import Aggregation
from kullback.audit.catalogue import Reading
from kullback.audit.clamping import Clamp
from kullback.audit.forms import EXACT, SAMPLED, Form, Weight
from kullback.audit.gradients import Gradient
from kullback.audit.telling import (
    clamp_words,
    derivative_words,
    form_words,
    gradient_words,
    held_at,
    joined,
    level_words,
    number,
    times,
)


def gradient(of, part="token", prefixes="current", factor=1.0, **more):
    distances = {"KL(current||reference)": (0.9, 0.4)}
    given = {"nearest": "KL(current||reference)", "cosine": 0.9, "relative_error": 0.4} | more
    return Gradient(
        "on-policy", "loss", "random", of, part, prefixes, factor, distances=distances, **given
    )


@pytest.mark.parametrize("method", [*SAMPLED, *EXACT, "log-prob", "p log p/q"])
@pytest.mark.parametrize("unit", ["token", "sequence", "average"])
@pytest.mark.parametrize("scale", ["nats", "bits", "probabilities", "ratios"])
def test_every_form_has_words(method, unit, scale):
    assert form_words(Form(method, "current", "reference", unit, scale), 0.5)


def test_forms():
    assert form_words(Form("k1", "current", "old"), -1.0) == "minus k1 of KL(current||old)"
    weight = Weight("current", "old", "prefix", "own")
    assert form_words(Form("k3", "current", "reference", weight=weight)) == (
        "k3 of KL(current||reference), weighted by current/old, the product up to each token, "
        "its own token's differentiated too"
    )
    assert "the squared log-ratio" in form_words(Form("k2", "current", "reference"), 2.0)
    assert "its ratio is inverted" in form_words(Form("k3", "reference", "current"))
    assert "its ratio is inverted" not in form_words(Form("k3", "old", "current"))


def test_numbers():
    told = {2.0: "2", 1 / 3: "1/3", -1 / 1024: "-1/1024", 0.5: "0.5", 0.7: "0.7", 0.0: "0"}
    assert {value: number(value) for value in told} == told
    assert number(1 / math.log(2)) == "1/log 2"
    assert times(0.25, "k1") == "1/4 times k1"


def test_levels():
    def said(within="mean", batch="tokens", takes_mask=True, leaks=False, returns="scalar"):
        return level_words(Aggregation(returns, within, batch, takes_mask, leaks))

    assert said() == "A mean over all tokens of the batch"
    assert said(takes_mask=False, leaks=True) == "A mean over all positions; it takes no mask"
    assert said(leaks=True).endswith("padding included: its mask does not keep that out")
    assert said(returns="token", batch="none").startswith("One number per token")
    assert said(batch="other") == "Averaged by no rule that is known"


def test_clamps():
    form = Form("k3", "current", "reference", weight=Weight("current", "old", "token"))
    found = (
        Clamp("output", 10.0, 2.61, gradient=False),
        Clamp("output", 10.0, -11.0, gradient=False),
        Clamp("weight", 2.0, math.log(2), gradient=True),
    )
    assert held_at(found) == ", clamped at 10, its weight clamped at 2"
    assert held_at(()) == ""
    assert clamp_words(found, form) == (
        "Clamped where reference/current is above 13.6 (no gradient there), reference/current is "
        "below 1.67e-05 (no gradient there) and current/old is above 2"
    )


def test_gradients():
    def said(*given, **more):
        return gradient_words(gradient(*given, **more), "current", "reference")

    assert said("KL(reference||current)") == (
        "descends KL(reference||current), the other direction, token by token with the sampler's "
        "prefixes held fixed"
    )
    whole = said("KL(current||reference)", "whole", None, -2.0)
    assert whole == "ascends KL(current||reference), of whole sequences, times 2"
    assert said("zero", "whole", None, 0.0).startswith("has an expected gradient of zero")
    assert "is KL(current||reference) (cosine 0.900, relative error 0.40)" in said(None)
    far = said(None, nearest="KL(reference||current)", cosine=0.95, relative_error=0.2)
    assert far.endswith("KL(current||reference) itself these are cosine 0.900, relative error 0.40")
    assert said(None, cosine=0.1).endswith("it is like none (the largest cosine is 0.10)")
    assert said("KL(current||reference)", "token", "old").endswith("the prefixes of old held fixed")
    per_token = said("KL(current||reference) per token (E sum / E length)", "whole", None)
    assert per_token == "descends KL(current||reference) per token (E sum / E length)"


def test_derivatives():
    form = Form("k1", "current", "reference", credit="reward_to_go")
    assert derivative_words(Reading(form, 1.0, False, 0.0)) == (
        "k1 of KL(current||reference), held constant as a cost from that token on beside the "
        "log-prob"
    )
    exact = Form("KL", "current", "reference", credit="future")
    assert "later tokens" in derivative_words(Reading(exact, 1.0, False, 0.0))
    both = Reading(form, 1.0, False, 0.0, (Form("k2", "current", "reference"), 2.0))
    assert derivative_words(both).endswith(
        "plus 2 times k2 of current and reference, half the squared log-ratio"
    )


def test_lists():
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "c"], "or") == "a, b or c"
