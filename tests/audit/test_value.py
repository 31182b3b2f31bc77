from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kullback as kb


def probed(fn, **given):
    return kb.audit.probe(fn, library="numpy", **given).value


def k1(current, reference):
    return current - reference


def test_the_form_its_factor_and_its_mean():
    value = probed(lambda current, reference: 3 * (current - reference))
    assert value.form is not None
    assert (value.form.method, value.factor) == ("k1", pytest.approx(3))
    assert value.means["on-policy"] == ("KL(current||reference)", pytest.approx(3))
    assert value.means["stale"] is None
    assert value.at_identity == 0
    assert value.depends_on == ("current", "reference")


def test_weights_and_their_means():
    def prefix(current, reference, rollout):
        return np.cumprod(np.exp(current - rollout), axis=-1) * (current - reference)

    def token(current, reference, rollout):
        return np.exp(current - rollout) * (current - reference)

    whole, part = probed(prefix), probed(token)
    assert whole.means["stale"] == ("KL(current||reference)", pytest.approx(1))
    name = "KL(current||reference) at the sampler's prefixes"
    assert part.means["stale"] == (name, pytest.approx(1))


def test_a_mean_of_means_is_no_kl_where_lengths_are_random():
    def of_tokens(current, reference, mask):
        return ((current - reference) * mask).sum() / mask.sum()

    def of_means(current, reference, mask):
        return (((current - reference) * mask).sum(-1) / mask.sum(-1)).mean()

    assert probed(of_tokens).means["on-policy"] == ("KL(current||reference)", pytest.approx(1))
    assert probed(of_means).means["on-policy"] is None


def test_k2_is_no_kl_and_a_control_is_zero():
    assert probed(lambda current, reference: k1(current, reference) ** 2 / 2).means == {
        "on-policy": None,
        "stale": None,
    }
    control = probed(lambda current, reference: np.expm1(reference - current))
    assert control.means["on-policy"] == ("zero", 0.0)


def test_what_is_unknown_has_no_form_and_what_is_nothing_too():
    for fn in (
        lambda current, reference: np.sin(k1(current, reference)),
        lambda current, reference: 0 * current,
        lambda current, reference: np.where(current > -50, np.nan, reference),
    ):
        value = probed(fn)
        assert (value.form, value.factor, value.clamps) == (None, None, ())


def test_what_it_does_not_depend_on():
    value = probed(lambda current, reference, old: k1(current, reference))
    assert value.depends_on == ("current", "reference")
    assert probed(lambda current, reference: 0 * current).depends_on == ()


def test_a_value_as_data():
    data = probed(lambda current, reference: np.minimum(k1(current, reference), 5.0)).as_data()
    assert data["form"]["method"] == "k1"
    assert data["clamps"][0]["at"] == 5.0
    assert data["means"]["on-policy"] == {
        "of": "KL(current||reference)",
        "factor": pytest.approx(1),
    }
    two = probed(lambda current, reference: k1(current, reference) + np.expm1(reference - current))
    assert two.as_data()["form"]["method"] == "k3"


@given(
    st.floats(0.1, 3.0).map(lambda x: round(x, 3)), st.floats(-3.0, -0.1).map(lambda x: round(x, 3))
)
@settings(max_examples=15)
def test_a_sum_of_two_forms_is_taken_apart_whatever_the_factors(one, other):
    def mixed(current, reference):
        x = reference - current
        return one * (np.expm1(x) - x) + other * x**2 / 2

    value = probed(mixed)
    assert value.form is not None
    assert value.second is not None
    factors = {value.form.method: value.factor, value.second[0].method: value.second[1]}
    assert factors == {"k3": pytest.approx(one), "k2": pytest.approx(other)}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_computed_in_float32_is_recognized_too(dtype):
    def rounded(current, reference):
        x = (reference - current).astype(dtype)
        return np.expm1(x) - x

    value = probed(rounded)
    assert value.form is not None
    assert (value.form.method, value.factor) == ("k3", pytest.approx(1, rel=1e-5))
    assert value.departures == ()
