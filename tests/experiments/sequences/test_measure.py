from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.experiments.sequences import measure


def test_normal_tokens_have_the_closed_forms():
    for shift in (0.1, 0.2):
        for length in (1, 7, 1000):
            it, square = measure.normal(shift, length), shift**2
            kl = length * square / 2
            assert it.kl == pytest.approx(kl)
            assert it.k1 == pytest.approx(2 / (shift * length**0.5))
            token = length * (np.expm1(square) - square)
            assert it.tokens == pytest.approx(token**0.5 / kl, rel=1e-9)
            whole = np.expm1(length * square) - length * square
            assert it.sums == pytest.approx(whole**0.5 / kl, rel=1e-9)


def enumerated(kinds, rows):
    """The spreads of a sequence of two tokens, by every prompt, prefix and token."""
    met = measure.world(kinds)
    log_p, log_q = (met.log_probs[role][rows] for role in ("rollout", "reference"))
    p, x = np.exp(log_p).ravel() / len(rows), (log_q - log_p).ravel()
    kl = np.repeat(met.kl("rollout", "reference")[rows], log_p.shape[1])
    both = np.outer(p, p)
    sums = {
        "k1": np.add.outer(kb.k1(x), kb.k1(x)),
        "tokens": np.add.outer(kb.k3(x), kb.k3(x)),
        "sums": kb.k3(np.add.outer(x, x)),
        "exact": np.add.outer(kl, kl),
    }
    return {name: (np.sum(both * value), np.sum(both * value**2)) for name, value in sums.items()}


def test_two_tokens_are_those_of_the_enumeration(monkeypatch):
    full = measure.world(1)
    small = {
        role: table[::32, :12] - np.log(np.exp(table[::32, :12]).sum(axis=1, keepdims=True))
        for role, table in full.log_probs.items()
    }
    monkeypatch.setattr(measure, "world", lambda kinds: kb.worlds.Mixture(small, kinds=kinds))
    measure._moments.cache_clear()
    try:
        for kinds in (1, 4):
            found = measure.prompts(kinds, 2)
            parts = [enumerated(kinds, rows) for rows in np.arange(8).reshape(kinds, -1)]
            for name in ("k1", "tokens", "sums", "exact"):
                mean, second = np.mean([part[name] for part in parts], axis=0)
                assert mean == pytest.approx(found.kl, rel=1e-10)
                sd = (second - mean**2) ** 0.5 / mean
                assert getattr(found, name) == pytest.approx(sd, rel=1e-8)
    finally:
        measure._moments.cache_clear()


def test_the_kl_is_that_of_the_world():
    question = kb.Question("rollout", "reference")
    for kinds in (1, 32):
        exact = measure.world(kinds).exact(question)
        assert measure.prompts(kinds, 64).kl == pytest.approx(64 * exact, rel=1e-12)


def test_a_subset_is_what_draws_of_it_show():
    met, rng = measure.world(1), np.random.default_rng(0)
    log_p, log_q = (met.log_probs[role] for role in ("rollout", "reference"))
    kl = met.kl("rollout", "reference")
    spread, length, draws = measure.prompts(1, 32), 32, 20_000
    edges = np.cumsum(np.exp(log_p), axis=1) / np.exp(log_p).sum(axis=1, keepdims=True)
    prefix = rng.integers(256, size=(draws, length))
    # All prefixes' edges in one line, a unit for each prefix.
    line = (edges + np.arange(256)[:, None]).ravel()
    place = np.searchsorted(line, prefix + rng.random((draws, length)))
    k3 = kb.k3((log_q - log_p).ravel()[place])
    alone = kl[prefix[:, :2]].mean(axis=1)
    corrected = k3.mean(axis=1) + (kl[prefix] - k3)[:, :2].mean(axis=1)
    for drawn, sd in ((alone, spread.subset), (corrected, spread.corrected)):
        off = (drawn * length - spread.kl) / spread.kl
        error = np.std(off**2) / draws**0.5
        assert abs(np.mean(off**2) - sd**2) < 5 * error


@pytest.mark.parametrize("seed", range(3))
def test_batches_are_within_five_exact_standard_errors(seed):
    for shift in (0.1, 0.2):
        assert all(abs(one.z) < 5 for one in measure.batch(shift, 300, 256, seed).values())


def test_the_longest_is_where_the_noise_crosses():
    turn = measure.longest(1)
    at, beyond = measure.prompts(1, turn), measure.prompts(1, turn + 1)
    assert at.sums <= at.k1
    assert beyond.sums > beyond.k1


def test_three_tokens_have_one_mean_and_falling_variances():
    for ends in (False, True):
        found = measure.three(ends)
        means = [mean for mean, _ in found.values()]
        assert means == pytest.approx([means[0]] * 4, rel=1e-12)
        order = ("Rao-Blackwell", "k3 of each token", "k3 of the sum", "k1")
        variances = [found[name][1] for name in order]
        assert variances == sorted(variances)
