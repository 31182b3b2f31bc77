from __future__ import annotations

import pytest

from kullback.dictionary.openrlhf import OPENRLHF

KL = OPENRLHF[0]


def test_it_is_in_the_reward_by_default():
    assert (KL.use, KL.p, KL.method) == ("reward", "old", "k1")


@pytest.mark.parametrize(
    ("method", "unbiased", "gradient"),
    [
        ("k1", False, "zero"),
        ("k2", False, "KL(current||reference), token by token"),
        ("k3", False, "KL(reference||current), token by token"),
        ("k1", True, "KL(current||reference), token by token"),
        ("k3", True, "KL(current||reference), token by token"),
    ],
)
def test_as_a_loss_the_estimator_decides(method, unbiased, gradient):
    settings = {
        "kl.estimator": method,
        "kl.use_loss": True,
        "kl.unbiased_gradient": unbiased,
    }
    one, _ = KL.under(settings)
    assert (one.use, one.p, one.method, one.gradient) == ("loss", "current", method, gradient)


def test_a_coefficient_of_0_is_told():
    assert KL.under({"kl.init_coef": 0})[1] == ("Nothing is trained on it: kl.init_coef is 0.",)
