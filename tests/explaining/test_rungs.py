from __future__ import annotations

import pytest

from kullback.estimation import rungs
from kullback.explaining.rungs import RUNGS


def numbers(name):
    return RUNGS[name].worked()[1]


def test_every_rung_is_explained():
    assert set(RUNGS) == set(rungs.RUNGS)


def test_the_partial_form_has_the_kl_as_its_mean_and_less_noise_than_k1():
    found = numbers("partial")
    assert found["mean"] == pytest.approx(found["kl"], rel=1e-12)
    assert found["deviation"] < found["deviation_k1"]
    assert 0 < found["outside"] < 1


def test_the_bound_is_below_the_kl_and_what_is_biased_is_off():
    assert 0 < numbers("bound")["mean"] < numbers("bound")["kl"]
    for name in ("biased_head", "biased_head_renormalized"):
        assert abs(numbers(name)["mean"] / numbers(name)["kl"] - 1) > 0.05


def test_the_bound_makes_a_subset_nearly_as_good_as_all_of_it():
    found = numbers("subset")
    assert found["rao_blackwell"] < found["with_bound"] < 2 * found["rao_blackwell"]
    assert found["alone"] == pytest.approx(20 * found["rao_blackwell"])


def test_rao_blackwell_has_the_kl_as_its_mean():
    found = numbers("rao_blackwell")
    assert found["mean"] == pytest.approx(found["kl"], rel=1e-12)
    assert found["deviation"] < found["deviation_k1"]
