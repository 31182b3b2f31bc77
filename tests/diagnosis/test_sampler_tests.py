from __future__ import annotations

from dataclasses import replace
from math import log
from typing import cast

import numpy as np
import pytest

from kullback.columns import pack
from kullback.diagnosis.sampler_tests import ALPHA, cause, chance, failing, sampler_tests
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

WORLD = cast(Mixture, CLEAN_WORLDS["smooth"](64))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def made(columns, *kinds: str):
    return [test for test in sampler_tests(summarize([columns])) if test.kind in kinds]


def batch_with_sum(total: float, tokens: int = 100):
    """A batch in which the sum of log q/p is this."""
    log_p = np.full((tokens, 1), -1.1)  # no bfloat16 number, which would be given slack
    return pack({"p": log_p, "q": log_p + total / tokens})


def test_the_price_of_a_negative_sum_is_its_exponential():
    (test,) = made(batch_with_sum(7.0), "bound")
    assert (test.kind, test.sampler, test.other, test.count) == ("bound", "p", "q", 100)
    assert test.log_p == pytest.approx(-7.0, rel=1e-12)


def test_a_positive_sum_of_k1_has_no_price():
    assert [test.log_p for test in made(batch_with_sum(-7.0), "bound", "bet")] == [0.0, 0.0]


@pytest.mark.parametrize(("total", "failed"), [(5.2, False), (5.4, True)])
def test_the_bound_and_the_bet_share_one_per_cent(total, failed):
    assert -log(ALPHA / 2) == pytest.approx(5.298, abs=1e-3)
    assert bool(failing(sampler_tests(summarize([batch_with_sum(total)])))) == failed


def test_more_tests_share_the_one_per_cent():
    log_p = np.full((100, 1), -1.1)
    roles = {"p": log_p, "q": log_p + 0.054} | {f"r{i}": log_p - 0.01 for i in range(5)}
    tests = sampler_tests(summarize([pack(roles)]))
    assert len(tests) == 12
    assert not failing(tests)


def test_what_rounding_may_have_added_is_not_held_against_the_sampler():
    """Rounded to bfloat16, log-probs of −1 are off by up to 2⁻⁹: 100 tokens by 0.4 nats."""
    log_p = np.full((100, 1), -1.0)
    (test,) = made(pack({"p": log_p, "q": log_p + 6 / 128}), "bound")
    assert test.slack == pytest.approx(100 * 4e-5 + 2**-9 * (100 + 100 * (1 - 6 / 128)))
    assert test.log_p < log(ALPHA) < test.log_p + test.slack
    assert not failing((test,))


def test_the_bet_is_one_of_a_tenth_at_each_token():
    """Ten tokens at which q/p is 3, and ten at which it is 0.2: 10 log 1.2 + 10 log 0.92."""
    log_p = np.full((20, 1), -3.3)
    log_q = log_p + np.log(np.repeat([3.0, 0.2], 10))[:, None]
    (bet,) = made(pack({"p": log_p, "q": log_q}), "bet")
    gain = 10 * log(1.2) + 10 * log(0.92)
    assert (bet.sampler, bet.other, bet.count) == ("p", "q", 20)
    assert bet.log_p == pytest.approx(-gain, rel=1e-12)
    assert bet.mean == pytest.approx(gain / 20, rel=1e-12)


def test_a_bet_on_what_the_sampler_forbade_stays_a_number():
    log_p = np.full((20, 1), -5000.3)
    (bet,) = made(pack({"p": log_p, "q": log_p + 5000.0}), "bet")
    assert bet.log_p == pytest.approx(-20 * log(0.1 * 1e300), rel=1e-6)


def test_an_honest_sampler_gains_no_more_from_bets_than_it_should():
    """By Markov, of 300 reports at most 1 in 10 may gain tenfold; E[gain] is 1."""
    world = CLEAN_WORLDS["three_token_language"](4)
    bets = [made(world.sample(rng(seed)), "bet") for seed in range(150)]
    gains = np.array([np.exp(one.mean * one.count) for two in bets for one in two])
    assert abs(gains.mean() - 1) < 4 * gains.std() / np.sqrt(len(gains))
    assert (gains > 10).mean() <= 0.1


def opening(shared: float, pairs: int = 10, apart: float = -2.0):
    """Pairs of sequences of one prompt that share their first token alone, of log-prob −shared."""
    log_p = np.tile([[-shared, apart], [-shared, apart]], (pairs, 1))
    tokens = np.tile([[1, 2], [1, 3]], (pairs, 1)).ravel()
    columns = pack({"p": log_p, "q": log_p - 0.1}, clusters=np.repeat(np.arange(pairs), 2))
    return replace(columns, tokens=tokens)


def test_like_openings_cost_what_exponentials_do():
    """Ten pairs that share 3.3 nats each: Chernoff's bound for a sum of ten exponentials."""
    (test,) = made(opening(3.3), "openings")
    assert test.log_p == pytest.approx(10 - 33 + 10 * log(3.3), rel=1e-9)
    assert (test.count, test.mean) == (10, pytest.approx(3.3))
    assert [one.log_p for one in made(opening(0.9), "openings")] == [0.0]


@pytest.mark.parametrize(("shared", "said"), [(3.3, "sampler"), (8.3, "prompt")])
def test_what_costs_little_is_laid_to_the_sampler(shared, said):
    summary = summarize([opening(shared, pairs=40)])
    failed = failing(sampler_tests(summary))
    (test,) = [test for test in failed if test.kind == "openings"]
    assert cause(summary, test, failed) == said


def test_no_openings_are_tested_without_ids():
    assert not made(replace(opening(8.0), tokens=None), "openings")


@pytest.mark.parametrize("name", ["misaligned", "prompt", "prompt-scored"])
def test_what_is_no_fault_of_the_sampler_has_another_cause(name):
    summary = summarize([FAULTS[name].inject(WORLD, rng())])
    failed = failing(sampler_tests(summary))
    assert "sampler" not in {cause(summary, test, failed) for test in failed}


def test_heads_that_weigh_too_much_test_nobody():
    summary = summarize([FAULTS["unnormalized"].inject(WORLD, rng())])
    assert summary.distributions["reference"].heavy
    assert not [test for test in sampler_tests(summary) if test.kind == "heads"
                and test.sampler == "reference"]  # fmt: skip


def test_decimals_that_round_all_to_0_are_not_held_against_the_sampler():
    """A policy that is nearly certain: −0.004 is printed as 0, at every token."""
    certain = -rng().uniform(1e-4, 4.9e-3, size=(64, 100))
    certain[:, 0] = -3.21
    summary = summarize([pack({"p": certain, "q": np.round(certain, 2)})])
    tests = sampler_tests(summary)
    assert min(test.log_p for test in tests) < -10
    assert failing(tests) == ()


@pytest.mark.parametrize(("log_p", "said"), [(0.0, "1"), (-4.6, "0.01"), (-2302.6, "1e-1000")])
def test_a_chance_is_spoken_even_if_no_float_holds_it(log_p, said):
    assert chance(log_p) == said


def test_a_selected_sample_is_not_tested():
    """What the engine did not log may depend on what it drew."""
    log_p = np.full((100, 1), -1.1)
    log_p[0] = np.nan
    assert not sampler_tests(summarize([pack({"p": log_p, "q": log_p + 0.1})]))


def test_each_pair_is_bet_on_once_whatever_is_asked_first():
    world = cast(Mixture, CLEAN_WORLDS["training_loop"](4))
    asked = ["KL(current||reference) ~ rollout", "KL(rollout||current)", "KL(rollout||reference)"]
    summary = summarize([world.sample(rng())], questions=asked)
    for kind in ("bound", "bet"):
        pairs = [(one.sampler, one.other) for one in sampler_tests(summary) if one.kind == kind]
        assert sorted(pairs) == [("rollout", "current"), ("rollout", "reference")]


def test_zeros_of_a_sampler_leave_its_products_as_they_are_or_smaller():
    """Rows of other tokens are found though the sampler's ends hold zeros."""
    columns = WORLD.sample(np.random.default_rng(0))
    values = columns.log_probs["rollout"].copy()
    values[columns.ends - 1] = 0.0
    summary = summarize([replace(columns, log_probs={**columns.log_probs, "rollout": values})])
    kinds = {test.kind for test in sampler_tests(summary) if test.sampler == "rollout"}
    assert kinds == {"bound", "bet"}
