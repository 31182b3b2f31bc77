from __future__ import annotations

import math

import numpy as np
import pytest

from kullback.diagnosis.sampler_tests import ALPHA, FLOAT32_FLOOR
from kullback.explaining.scalar import COARSE, HOPELESS, NEAR, ROUNDED, judge
from kullback.formulas.shape import shape
from kullback.worlds import CLEAN_WORLDS, Mixture
from kullback.worlds.faults import rounded_to_bf16


def verdict(name: str, value: float, tokens: int) -> str:
    return judge(name, value, tokens).numbers["verdict"]


def test_the_number_in_a_log_that_no_noise_makes():
    said = judge("kl", -0.031, 8192)
    assert said.caption == "noise cannot do this"
    log_p = -0.031 * 8192 + FLOAT32_FLOOR * 8192
    assert said.numbers["log_p"] == pytest.approx(log_p, rel=1e-12)
    assert f"{math.exp(log_p):.2g}" == "7.1e-111"
    assert "7.1e-111" in said.text


@pytest.mark.parametrize("name", ["kl", "k1"])
@pytest.mark.parametrize("value", [-0.031, -0.5, -1e-3, -20.0])
def test_the_tokens_that_are_needed_for_one_per_cent_suffice_and_one_less_does_not(name, value):
    needed: int = judge(name, value, 1).numbers["tokens_needed"]
    assert verdict(name, value, needed) == "not-noise"
    assert needed == 1 or verdict(name, value, needed - 1) == "no-evidence"
    assert judge(name, value, needed).numbers["log_p"] < math.log(ALPHA)


def test_a_mean_of_minus_0031_needs_149_tokens():
    assert judge("kl", -0.031, 64).numbers["tokens_needed"] == 149
    assert "149 tokens would be needed for 1%" in judge("kl", -0.031, 64).text.replace(
        "\n            ", " "
    )


def test_what_is_rare_is_not_called_impossible():
    rare, never = judge("k1", -0.031, 200), judge("k1", -0.031, 8192)
    assert HOPELESS < math.exp(rare.numbers["log_p"]) < ALPHA
    assert (rare.caption, never.caption) == ("noise seldom does this", "noise cannot do this")
    assert "multiply by" in dict(rare.sections)["Says"]


def test_honest_batches_are_seldom_called_not_noise():
    """Of 400 batches of 400 tokens of an honest sampler with a KL of 0.002 four are expected."""
    rng = np.random.default_rng(0)
    means = rng.normal(0.002, math.sqrt(2 * 0.002), size=(400, 400)).mean(axis=1)
    assert (means < 0).mean() > 0.1
    called = sum(verdict("k1", float(mean), 400) == "not-noise" for mean in means)
    assert called <= 4


def test_below_what_kernels_differ_by_no_count_of_tokens_tells():
    assert verdict("k1", -FLOAT32_FLOOR, 10**9) == "rounding"
    assert verdict("k1", -1.1 * FLOAT32_FLOOR, 10**9) == "not-noise"


def test_a_small_positive_mean_is_within_noise_of_zero():
    said = judge("kl", 0.0004, 512)
    assert said.numbers["verdict"] == "within-noise"
    assert said.numbers["standard_error"] == pytest.approx(math.sqrt(2 * 0.0004 / 512))
    assert verdict("kl", 0.05, 8192) == "positive"


@pytest.mark.parametrize(("value", "tokens"), [(0.0004, 512), (0.05, 8192), (1e-6, 7)])
def test_the_kls_that_fit_are_two_of_their_own_errors_away(value, tokens):
    numbers = judge("k1", value, tokens).numbers
    for kl in (numbers["low"], numbers["high"]):
        assert abs(value - kl) == pytest.approx(NEAR * math.sqrt(2 * kl / tokens), rel=1e-9)


@pytest.mark.parametrize("name", ["light_drift", "smooth"])
def test_the_rough_noise_is_that_of_smooth_pairs(name):
    """sd(k1) ≈ √(2 KL) to 2 per cent; sd(k3) is 1.2 to 1.3 times √2 KL, for prefixes differ."""
    world = CLEAN_WORLDS[name](16)
    assert isinstance(world, Mixture)
    pair = shape(world.joint("rollout"), world.joint("reference"))
    assert math.sqrt(pair.variance_k1) == pytest.approx(math.sqrt(2 * pair.kl_pq), rel=0.02)
    assert 1.2 < math.sqrt(pair.variance_k3 / 2) / pair.kl_pq < 1.3


@pytest.mark.parametrize("name", ["k2", "k3"])
def test_a_negative_mean_of_what_is_never_negative_is_no_noise(name):
    assert verdict(name, -0.02, 3) == "impossible"
    assert verdict(name, 0.02, 3) == "positive"


def test_rounding_can_make_k3_negative_and_never_a_square():
    assert verdict("k3", -ROUNDED, 3) == "rounding"
    assert verdict("k3", -1.01 * ROUNDED, 3) == "impossible"
    assert "bfloat16" in dict(judge("k3", -COARSE, 3).sections)["Says"]
    assert "bfloat16" not in dict(judge("k3", -1.01 * COARSE, 3).sections)["Says"]
    assert verdict("k2", -1e-12, 3) == "impossible"


def test_how_far_below_zero_rounding_brings_a_naive_k3():
    x = np.linspace(-0.5, 0.5, 200_001).astype(np.float32)
    naive = [(np.exp(x) - np.float32(1)) - x, (np.exp(x) - x) - np.float32(1)]
    assert -ROUNDED <= min(terms.min() for terms in naive) < -ROUNDED / 16
    x = rounded_to_bf16(x)
    step = rounded_to_bf16(rounded_to_bf16(np.exp(x)) - 1.0)
    coarse = rounded_to_bf16(step - x)
    assert -COARSE <= coarse.min() < -COARSE / 16


@pytest.mark.parametrize("name", ["kl", "k2", "k3"])
@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e6, -5e-324, -1e6])
@pytest.mark.parametrize("tokens", [1, 10**15])
def test_extreme_numbers_are_judged_with_finite_ones(name, value, tokens):
    said = judge(name, value, tokens)
    assert all(isinstance(n, str) or math.isfinite(n) for n in said.numbers.values())
    assert "nan" not in said.text
    assert "inf" not in said.text.replace("kullback", "")


def test_numbers_of_numpy_are_read_as_pythons():
    said = judge("kl", np.float32(-0.5), np.int64(64))  # pyright: ignore[reportArgumentType]
    assert said.numbers == judge("kl", -0.5, 64).numbers
    assert type(said.numbers["value"]) is float


def test_zero_is_no_estimate():
    assert {verdict(name, 0.0, 5) for name in ("kl", "k1", "k2", "k3")} == {"zero"}


@pytest.mark.parametrize("value", [-0.031, -1e-6, 0.0, 1e-5, 0.3])
@pytest.mark.parametrize("name", ["kl", "k1", "k2", "k3"])
def test_every_judgment_says_on_which_conditions_and_what_to_log(name, value):
    said = judge(name, value, 64)
    parts = dict(said.sections)
    assert {"Says", "Provided", "Log"} <= set(parts)
    matters = name in ("kl", "k1") or value >= 0
    assert ("p sampled these tokens; q was fixed before" in parts["Provided"]) == matters
    assert ("Who sampled does not matter." in parts["Provided"]) != matters
    assert len(said.lines(80)) <= 40


@pytest.mark.parametrize(
    ("name", "value", "tokens", "told"),
    [
        ("ess", 0.1, 10, "not of ess"),
        ("kl", math.nan, 10, "not finite"),
        ("kl", -math.inf, 10, "not finite"),
        ("kl", -0.1, 0, "of 1 to 1e\\+15 whole tokens"),
        ("kl", -0.1, 10**400, "of 1 to 1e\\+15 whole tokens"),
        ("kl", -0.1, 10.5, "of 1 to 1e\\+15 whole tokens"),
        ("k3", -2e6, 10, "look for a sentinel"),
    ],
)
def test_what_cannot_be_judged_is_refused(name, value, tokens, told):
    with pytest.raises(ValueError, match=told):
        judge(name, value, tokens)
