from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.sequences.lengths import FORMULAS, Ends, drawn, selected, share

PAIRS = [Ends(0.02, 0.01), Ends(0.02, 0.04), Ends(0.3, 0.2)]
LENGTHS = np.arange(1, 20_001)


@pytest.mark.parametrize("ends", PAIRS)
@pytest.mark.parametrize("name", FORMULAS)
def test_closed_sums_are_the_sums(ends, name):
    goes_on, last = ends.values(FORMULAS[name])
    weight, total = share(ends.p, LENGTHS), (LENGTHS - 1) * goes_on + last
    one = total / LENGTHS
    mean = weight @ one
    assert ends.sequence_mean(FORMULAS[name]) == pytest.approx(mean, rel=1e-10)
    sd = (weight @ (one - mean) ** 2) ** 0.5
    assert ends.sequence_mean_sd(FORMULAS[name]) == pytest.approx(sd, rel=1e-8)
    kl = weight @ total
    assert kl == pytest.approx(ends.kl / ends.p, rel=1e-10)
    spread = (weight @ (total - kl) ** 2) ** 0.5 / kl
    assert ends.total_sd(FORMULAS[name]) == pytest.approx(spread, rel=1e-8)
    assert ends.token_mean(FORMULAS[name]) == pytest.approx(ends.kl, rel=1e-10)
    assert ends.between(FORMULAS[name], 1, 20_000) == pytest.approx(ends.kl, rel=1e-10)


@pytest.mark.parametrize("ends", PAIRS[1:])
def test_k3_of_sums_is_the_sum_where_it_converges(ends):
    lengths = LENGTHS[:2500]  # beyond, the ratio is too large for a float
    weight = share(ends.p, lengths)
    one = kb.k3((lengths - 1) * np.log((1 - ends.q) / (1 - ends.p)) + np.log(ends.q / ends.p))
    mean = weight @ one
    assert mean == pytest.approx(ends.kl / ends.p, rel=1e-10)
    assert ends.sums_sd() == pytest.approx((weight @ (one - mean) ** 2) ** 0.5 / mean, rel=1e-8)


def test_at_the_edge_the_variance_goes():
    edge = Ends(0.02, 0.01).edge
    assert Ends(0.02, edge - 1e-9).sums_sd() == np.inf
    assert 1e3 < Ends(0.02, edge + 1e-9).sums_sd() < np.inf


def test_rao_blackwell_of_a_sum_has_the_noise_of_the_length():
    ends = PAIRS[0]
    weight = share(ends.p, LENGTHS)
    mean = weight @ LENGTHS
    assert ends.exact_sd == pytest.approx((weight @ (LENGTHS - mean) ** 2) ** 0.5 / mean)


@pytest.mark.parametrize("seed", range(3))
def test_draws_are_within_five_exact_standard_errors(seed):
    assert all(abs(z) < 5 for _, z in drawn(PAIRS[0], 20_000, seed).values())


def test_the_past_selects_without_bias_and_the_outcome_with_it():
    found = selected()
    for name, (_, k1, k3, true) in found.items():
        by_past = name in ("all", "the second tokens", "second tokens after a first 0")
        assert (k1 == pytest.approx(true, rel=1e-10)) == by_past, name
        assert (k3 == pytest.approx(true, rel=1e-10)) == by_past, name
    world = kb.worlds.three_tokens(ends=True)
    assert found["all"][3] == pytest.approx(world.exact(kb.Question("current", "reference")))
    assert found["sequences that were cut at 3 tokens"][1] < 0
