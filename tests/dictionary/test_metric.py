from __future__ import annotations

import dataclasses

import pytest

import kullback as kb
from kullback.dictionary import METRICS, Choice, Metric

KL = Metric("mine", ("kl",), "a leash", "current", "reference", "old", method="k3")
WEIGHTED = dataclasses.replace(KL, weight="current/old")


def test_a_field_has_a_word_of_its_own():
    with pytest.raises(ValueError, match="method 'k4' is none of"):
        Metric("mine", ("kl",), "a leash", method="k4")
    with pytest.raises(ValueError, match="sign 2 is none of"):
        Metric("mine", ("kl",), "a leash", sign=2)


def test_the_question_has_the_sampler_that_drew():
    assert str(KL.question) == "KL(current||reference) ~ old"
    assert dataclasses.replace(KL, p="").question is None


def test_a_level_that_is_no_question_is_asked_per_token():
    assert dataclasses.replace(KL, level="padded_mean").question == KL.question
    summed = dataclasses.replace(KL, level="sequence_sum").question
    assert summed
    assert summed.level == "sequence_sum"


def test_it_is_an_estimate_if_p_sampled_or_the_weight_says_so():
    assert not KL.is_estimate
    assert WEIGHTED.is_estimate
    assert dataclasses.replace(KL, sampler="current").is_estimate
    assert not dataclasses.replace(WEIGHTED, method="k2").is_estimate
    assert not dataclasses.replace(KL, q="").is_estimate


def test_the_formula_has_weight_and_sign():
    assert KL.formula_text == "r − 1 − log r, r = reference/current"
    turned = dataclasses.replace(WEIGHTED, method="k1", sign=-1)
    assert turned.formula_text == "−((current/old) · (log current − log reference))"


def test_only_k1_and_what_is_turned_can_be_negative():
    assert not KL.can_be_negative
    assert dataclasses.replace(KL, method="k1").can_be_negative
    assert dataclasses.replace(KL, sign=-1).can_be_negative
    assert not dataclasses.replace(KL, method="other", negative=False).can_be_negative


@pytest.mark.parametrize("spelled", [True, "TRUE", " true "])
def test_settings_may_be_spelled_as_text(spelled):
    on = Choice({"use_kl": True}, "On.", {"sign": -1})
    found, said = dataclasses.replace(KL, choices=(on,)).under({"use_kl": spelled})
    assert (found.sign, said) == (-1, ("On.",))


def test_a_choice_may_name_several_values_and_several_settings():
    both = Choice({"kind": ("k1", "kl"), "loss": True}, "Both.")
    assert both.holds({"kind": "KL", "loss": "true"})
    assert not both.holds({"kind": "k1"})
    assert not both.holds({"kind": "k3", "loss": True})


@pytest.mark.parametrize("zero", [0, 0.0])
def test_a_coefficient_of_0_trains_nothing(zero):
    one = dataclasses.replace(KL, coefficient="beta")
    assert one.under({"beta": zero})[1] == ("Nothing is trained on it: beta is 0.",)
    assert one.under({"beta": 0.04})[1] == one.under({})[1] == ()


def test_a_setting_that_is_off_is_no_coefficient_of_0():
    assert dataclasses.replace(KL, coefficient="beta").under({"beta": None})[1] == ()


@pytest.mark.parametrize(
    "one", METRICS, ids=lambda one: f"{one.framework}:{one.name}:{one.trainer}"
)
def test_an_entry_is_what_the_defaults_make_of_it(one):
    assert one.under({})[0] == one


@pytest.mark.parametrize(
    "one", METRICS, ids=lambda one: f"{one.framework}:{one.name}:{one.trainer}"
)
def test_every_choice_makes_a_metric(one):
    for choice in one.choices:
        met = {
            key: value[0] if isinstance(value, tuple) else value
            for key, value in choice.when.items()
        }
        changed, said = one.under(met)
        assert choice.says in ("", *said)
        assert changed.formula_text
        assert changed.question is None or isinstance(changed.question, kb.Question)


@pytest.mark.parametrize(
    "one", METRICS, ids=lambda one: f"{one.framework}:{one.name}:{one.trainer}"
)
def test_an_entry_says_what_a_reader_needs(one):
    assert one.meaning
    assert one.version
    assert one.source
    assert one.formula_text
    assert one.sampler or not one.p
    assert bool(one.p) == bool(one.q)
    assert bool(one.gradient) == (one.use in ("loss", "reward"))
    for sentence in (*one.faults, *(choice.says for choice in one.choices if choice.says)):
        assert sentence[0].isupper() or sentence[0] in "-(" or sentence.split()[0][0].islower()
        assert sentence.endswith(".")


def test_what_is_kl_beyond_doubt_is_never_said_to_be_verified_by_nothing():
    assert {one.verified for one in METRICS} <= {"probed", "measured", "read", "not verified"}
    for one in METRICS:
        assert bool(one.zoo) <= (one.verified == "probed")
