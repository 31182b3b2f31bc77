from __future__ import annotations

import numpy as np
import pytest

from kullback.worlds import LOG_FAULTS
from kullback.worlds.step_logs import NAMES, _terms, honest_log


def test_k1_and_k3_of_honest_tokens_estimate_the_kl():
    rng, kl, tokens = np.random.default_rng(0), 0.01, 2_000_000
    k1, k3 = _terms(rng, kl, 0.0, tokens)
    assert abs(k1 - kl) < 5 * np.sqrt(2 * kl / tokens)
    assert k3 == pytest.approx(kl, rel=0.02)


def test_holes_are_seen_by_k1_alone():
    k1, k3 = _terms(np.random.default_rng(0), 0.01, 0.005, 2_000_000)
    assert k1 - k3 == pytest.approx(0.005, abs=6e-4)


@pytest.mark.parametrize("names", NAMES)
def test_a_log_has_its_names_and_starts_at_the_reference(names):
    log = honest_log(np.random.default_rng(0), names, steps=40)
    assert set(log) == {name for name in NAMES[names] if name}
    assert {len(one) for one in log.values()} == {40}
    to_reference = NAMES[names][1] or NAMES[names][0]
    assert log[to_reference][0] == 0.0


def test_a_fault_leaves_the_log_it_was_given():
    log = honest_log(np.random.default_rng(0))
    before = {name: one.copy() for name, one in log.items()}
    for fault in LOG_FAULTS.values():
        fault.inject(log, NAMES["verl"])
    for name, one in before.items():
        np.testing.assert_array_equal(log[name], one)
