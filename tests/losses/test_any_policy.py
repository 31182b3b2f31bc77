"""The coefficients alone, without autograd: the law holds for whatever policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kullback.losses.forms import CLAIMS, coefficients
from kullback.losses.tokens import tokens_of

Array = NDArray[np.float64]
LOGITS = st.lists(st.floats(-6, 6), min_size=5, max_size=5)
# Forms made of sampled tokens; one token long, a sequence has no future.
SAMPLED = [key for key in CLAIMS if key[2] != "rao_blackwell"]


def softmax(logits: list[float]) -> Array:
    weights = np.exp(np.array(logits) - max(logits))
    return weights / weights.sum()


def mean_gradient(key: tuple[str, str, str], p: Array, q: Array, s: Array, **options: Any) -> Array:
    """Over what s draws, in the logits of who learns: sum of s c (one-hot - softmax)."""
    learn, gradient, form = key
    tokens = tokens_of(
        log_p=np.log(p)[:, None],
        log_q=np.log(q)[:, None],
        log_sampler=np.log(s)[:, None],
        mask=None,
        lengths=None,
        weights="token",
        clamp=None,
    )
    c = coefficients(
        tokens,
        learn=learn,
        gradient=gradient,
        form=form,
        weights="token",
        **{"truncate": None, "mean": 0.0, "baseline": 0.0, **options},
    )[:, 0]
    learner = p if learn == "p" else q
    return s * c - (s * c).sum() * learner


def gradient_of_kl(learn: str, p: Array, q: Array) -> Array:
    log_p_over_q = np.log(p / q)
    return p * (log_p_over_q - p @ log_p_over_q) if learn == "p" else q - p


@pytest.mark.parametrize("key", [key for key in SAMPLED if not CLAIMS[key].biased], ids="-".join)
@given(p=LOGITS, q=LOGITS, s=LOGITS)
def test_what_is_unbiased_is_so_for_any_three_policies(key, p, q, s):
    p, q, s = softmax(p), softmax(q), softmax(s)
    found, truth = mean_gradient(key, p, q, s), gradient_of_kl(key[0], p, q)
    scale = 1 + np.abs(np.log(p / q)).max() + (q / p).max()
    assert np.abs(found - truth).max() <= 1e-12 * scale


@given(p=LOGITS, q=LOGITS, s=LOGITS, constant=st.floats(-3, 3))
def test_a_constant_baseline_or_mean_changes_nothing(p, q, s, constant):
    policies = [softmax(one) for one in (p, q, s)]
    key = ("p", "sequence", "score")
    plain = mean_gradient(key, *policies)
    assert mean_gradient(key, *policies, baseline=constant) == pytest.approx(plain, abs=1e-12)
    assert mean_gradient(key, *policies, mean=constant) == pytest.approx(plain, abs=1e-12)


@given(p=LOGITS, q=LOGITS)
def test_equal_policies_have_no_gradient(p, q):
    same = softmax(p)
    for key in SAMPLED:
        assert mean_gradient(key, same, same, softmax(q)) == pytest.approx(0 * same, abs=1e-12)


# Forms that are wrong in the ways people write them: c_t, by x = log p/q, r = q/p and v = p/s.
WRONG = {
    "the weight forgotten": lambda x, r, v: x,
    "the weight upside down": lambda x, r, v: x / v,
    "k3 with its weight detached": lambda x, r, v: v * (1 - r),
    "k1 with its weight detached": lambda x, r, v: v,
    "k2 with its weight attached": lambda x, r, v: v * (x + x**2 / 2),
    "p and q exchanged": lambda x, r, v: -v * x,
    "the square without its half": lambda x, r, v: 2 * v * x,
    "k3 with its ratio upside down": lambda x, r, v: v * (1 / r - 1),
    "the absolute value": lambda x, r, v: v * np.sign(x),
    "a weight cut at 1": lambda x, r, v: np.minimum(v, 1) * x,
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_people_write_wrong_breaks_the_law(wrong):
    p, q, s = (softmax(one) for one in ([0.0, 1.0, -1.0], [1.0, 0.0, 0.5], [0.5, 0.5, -1.0]))
    c = wrong(np.log(p / q), q / p, p / s)
    found = s * c - (s * c).sum() * p
    assert np.abs(found - gradient_of_kl("p", p, q)).max() > 0.01
