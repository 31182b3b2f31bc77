from __future__ import annotations

import numpy as np
import pytest

from kullback.estimation.interval import ratio_interval
from kullback.explaining.enumerated import Tokens, after_first, coverage, exact, sums, world
from kullback.formulas.k_family import k1


@pytest.mark.parametrize("sampler", world().roles)
def test_a_mean_over_tokens_is_the_token_mean_of_the_world(sampler):
    tokens = Tokens.of(sampler)
    weight = np.exp(tokens.log_weight(sampler))
    text = "KL(current||reference)" + ("" if sampler == "current" else f" ~ {sampler}")
    assert tokens.weight.sum() == pytest.approx(1.0)
    assert tokens.mean(tokens.kl) == pytest.approx(exact(text), rel=1e-12)
    assert tokens.mean(weight * k1(tokens.log_q_over_p)) == pytest.approx(exact(text), rel=1e-12)


def test_a_deviation_is_that_of_a_token():
    tokens = Tokens.of()
    values = tokens.log_q_over_p
    assert tokens.deviation(values) == pytest.approx(
        np.sqrt(tokens.mean(values**2) - tokens.mean(values) ** 2)
    )


def test_entropies_are_at_the_prefix_of_the_token():
    """−log p − H has mean 0 at every prefix, so on average."""
    tokens = Tokens.of()
    surprise = -tokens.log_probs["current"] - tokens.entropy["current"]
    assert tokens.mean(surprise) == pytest.approx(0.0, abs=1e-14)


def test_sums_are_over_sequences():
    assert sums(np.ones(len(Tokens.of().weight))).tolist() == world().lengths.tolist()
    total = world().mean(-sums(Tokens.of().log_q_over_p), by="current")
    assert total == pytest.approx(exact("KL(current||reference) per sequence"), rel=1e-12)


def test_after_the_first_token_the_log_probs_are_those_of_that_prefix():
    assert np.exp(after_first("current")).sum() == pytest.approx(1.0)
    row = world().tree.contexts.index((0,))
    assert after_first("old").tolist() == world().log_probs["old"][row].tolist()


def test_coverage_is_what_a_simulation_finds():
    rng, small = np.random.default_rng(0), world()
    total, lengths = -sums(Tokens.of().log_q_over_p), small.lengths.astype(float)
    truth, held, batches = exact("KL(current||reference)"), 0, 4000
    chances = small.probability("current")
    for rows in rng.choice(len(chances), p=chances, size=(batches, 3)):
        size = lengths[rows].sum() ** 2 / (lengths[rows] ** 2).sum()
        found = ratio_interval(total[rows], lengths[rows], effective=size, confidence=0.95)
        held += found.low <= truth <= found.high
    expected = coverage(3)
    assert held / batches == pytest.approx(
        expected, abs=4 * np.sqrt(expected * (1 - expected) / batches)
    )
