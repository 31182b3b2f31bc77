from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.sampling.measure import SAME_TAIL, Filter, P, Q, means, zipf
from kullback.experiments.sampling.seen import accused, bet, checks

CUT = Filter(top_p=0.9)(P)
PAIRS = {"six": (P, Q, 3), "same tail": (P, SAME_TAIL, 3), "wide": (*zipf(), 20)}
pairs = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)


@pairs
def test_an_honest_sampler_shows_nothing(pair):
    p, q, head = pair
    found = checks(p, p, q, head)
    assert set(found) == {"missing", "entropy", "head"}
    for one in found.values():
        assert abs(one.mean) < 1e-14
        assert one.tokens is None
    assert bet(p, p, q) is None


def test_the_missing_mass_is_k1_less_k3():
    it = means(P, CUT, Q)
    assert checks(P, CUT, Q, 3)["missing"].mean == pytest.approx(it.raw_k1 - it.raw_k3, rel=1e-12)


def test_a_reference_of_the_same_tail_hides_a_cut_from_it():
    found = checks(P, CUT, SAME_TAIL, 3)
    assert found["missing"].tokens is None
    assert bet(P, CUT, SAME_TAIL) is None
    assert found["entropy"] == checks(P, CUT, Q, 3)["entropy"]
    assert found["entropy"].tokens == 433


@pytest.mark.parametrize("name", ["missing", "entropy", "head"])
def test_after_so_many_tokens_it_is_five_standard_errors_off(name):
    """In draws; the standard error is that under an honest sampler, as the exact one is."""
    statistics = {
        "missing": 1 - Q / P,
        "entropy": -np.log(P) + P @ np.log(P),
        "head": (np.arange(6) < 3) - P[:3].sum(),
    }
    one = checks(P, CUT, Q, 3)[name]
    assert one.tokens
    drawn = np.random.default_rng(0).choice(6, size=(4000, one.tokens), p=CUT)
    z = np.mean(statistics[name][drawn], axis=1) / (one.sd / np.sqrt(one.tokens))
    assert abs(abs(np.mean(z)) - 5) < 5 * np.std(z) / np.sqrt(4000) + 0.02


def test_the_bet_has_the_mean_1_if_the_policy_drew():
    for p, q, _ in PAIRS.values():
        assert p @ (1 + 0.1 * (q / p - 1)) == pytest.approx(1, abs=1e-14)
    warm = Filter(temperature=1.3)(P)
    assert bet(P, warm, Q) == 1972
    assert (1972 - 1) * (warm @ np.log1p(0.1 * (Q / P - 1))) < np.log(1000)


@pytest.mark.parametrize("seed", range(3))
def test_diagnose_needs_the_entropy_to_see_a_cut(seed):
    for p, q, _ in PAIRS.values():
        cut = Filter(top_p=0.9)(p)
        for s, told in ((p, (False, False)), (cut, (False, True))):
            assert tuple(accused(p, s, q, seed, entropy=it) for it in (False, True)) == told
