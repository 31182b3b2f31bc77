from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns, TopK, pack
from kullback.estimation.tempered_state import (
    EXPONENTS,
    FIRSTS,
    LONGEST,
    NORMALIZERS,
    RAW,
    TemperedState,
)

P = np.array([0.4, 0.3, 0.2, 0.1])


def columns_of(tokens, logs, **changes) -> Columns:
    """One prefix after another with this head, ids by rank."""
    tokens = np.asarray(tokens)
    table = np.tile(np.asarray(logs, dtype=np.float64), (len(tokens), 1))
    ids = np.tile(np.arange(table.shape[1]), (len(tokens), 1))
    packed = pack({"p": np.full((1, len(tokens)), -1.0)}, **changes)
    return replace(packed, tokens=tokens, top_k={"p": TopK(ids, table)})


def test_what_the_sums_are_made_of():
    state = TemperedState.of(columns_of([0, 2, 3, 9], np.log(P)), "p")
    (sums,) = state.groups.sums.T
    assert state.by_group("inside").tolist() == [3]
    assert state.by_group("first").tolist() == [1]
    assert state.by_group("chosen").tolist() == pytest.approx([np.log(P[[0, 2, 3]] / 0.4).sum()])
    depth = -np.log(P[[0, 2, 3]]).sum() - 3 * np.log(0.4)
    assert state.by_group("depth").tolist() == pytest.approx([depth])
    powers = (P[:, None] / 0.4) ** EXPONENTS
    assert sums[NORMALIZERS] == pytest.approx(3 * np.log(powers.sum(axis=0)), abs=1e-5)
    assert sums[FIRSTS] == pytest.approx(3 / powers.sum(axis=0), rel=1e-5)


def test_the_likelihood_of_any_temperature_has_mean_1_under_the_sampler():
    """E over the draws of (p^β / Σ p^β) / (p / Σ p), given that they are in the head: 1."""
    for size in (2, 3, 4):
        head, gains = P[:size], []
        for token in range(size):
            (sums,) = TemperedState.of(columns_of([token], np.log(head)), "p").groups.sums.T
            likelihood = EXPONENTS * sums[1] - sums[NORMALIZERS]
            gains.append(likelihood - likelihood[RAW])
        mean = (head / head.sum()) @ np.exp(gains)
        assert mean == pytest.approx(np.ones(len(EXPONENTS)), abs=1e-5)


def test_only_the_front_of_a_long_head_is_looked_at_and_no_tie_across_its_end():
    logs = np.log(np.full(LONGEST + 2, 0.05)) - np.arange(LONGEST + 2)
    inside = TemperedState.of(columns_of([LONGEST - 1, LONGEST], logs), "p").by_group("inside")
    assert inside.tolist() == [1]
    logs[LONGEST] = logs[LONGEST - 1]
    assert TemperedState.of(columns_of([0], logs), "p").by_group("inside").tolist() == [0]


@pytest.mark.parametrize("logs", [[-0.1], [-np.inf, -np.inf], [-0.1, -np.inf]])
def test_heads_that_say_nothing_add_nothing(logs):
    (sums,) = TemperedState.of(columns_of([0], logs), "p").groups.sums.T
    assert np.isfinite(sums).all()
    assert sums[NORMALIZERS] == pytest.approx(np.zeros(len(EXPONENTS)), abs=1e-12)
