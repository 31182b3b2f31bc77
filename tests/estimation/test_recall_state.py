from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.dumps import demo_path, read
from kullback.estimation.recall_state import LOOKED, RecallState
from kullback.worlds import CLEAN_WORLDS, Mixture


def of(rows, ids, mask=None) -> RecallState:
    columns = pack({"p": rows}, mask=mask)
    return RecallState.of(replace(columns, tokens=np.array(ids).ravel()), "p")


def template(sequences: int = 10, log_p: float = -3.0) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of twelve ids of their own, with the same five in the middle."""
    ids = np.arange(sequences * 12).reshape(sequences, 12) + 1000
    ids[:, 4:9] = [1, 2, 3, 4, 5]
    return np.full(ids.shape, log_p), ids


def test_a_bet_is_placed_where_it_came_twice_and_wins_by_the_odds():
    """The 4 behind 1 2 3 and the 5 behind 2 3 4, from the third time on: a third, then a half."""
    state = of(*template(4))
    assert state.bets == 4
    shares = np.array([1 / 3, 1 / 3, 2 / 4, 2 / 4])
    assert state.log_gain == pytest.approx(np.log1p(shares * np.expm1(3.0)).sum())
    assert (state.dearer, state.size, state.sequences, state.opening) == (4, 12.0, 2, 0)
    assert str(state.first[0][1]) == "row 3, token 7"


def test_a_token_that_comes_otherwise_loses_the_share():
    rows, ids = template(3)
    ids[2, 7] = 9  # then the 5 does not stand behind 2 3 4
    state = of(rows, ids)
    assert (state.bets, state.log_gain) == (1, pytest.approx(np.log(2 / 3)))


def test_what_is_not_counted_is_no_bet_and_still_foretells():
    rows, ids = template(4)
    mask = np.ones(ids.shape, dtype=bool)
    mask[:2] = False
    assert of(rows, ids, mask) == of(rows, ids)
    mask[2:, 7:9] = False
    assert of(rows, ids, mask).bets == 0


def test_a_run_of_one_id_and_a_copy_of_a_sequence_win_nothing():
    assert of(np.full((5, 8), -2.0), np.arange(5)[:, None] * 10 + np.zeros((5, 8), int)).bets == 0
    ids = np.tile(np.arange(12), (6, 1))
    assert of(np.full((6, 12), -3.0), ids).log_gain == 0.0


def test_beginnings_are_a_prompt_and_the_middle_another_turn():
    rows, ids = template(20)
    assert of(rows, ids).cause == "environment"
    assert of(rows, np.roll(ids, -4, axis=1)).cause == "prompt"
    assert of(*template(20, -0.5)).cause == "sampler"  # likely tokens: it may be sharper


def test_adding_is_that_of_both_and_looks_at_so_many_tokens_of_a_batch():
    one, other = of(*template(4)), of(*template(5))
    both = one + other
    assert both.log_gain == one.log_gain + other.log_gain
    assert (both.bets, both.sequences) == (one.bets + other.bets, 5)
    assert both.first[0] == max(one.first + other.first, key=lambda found: found[0])
    assert of(np.zeros((0, 3)), np.zeros((0, 3), int)).bets == 0
    rows, ids = template(LOOKED // 12 + 50)
    assert of(rows, ids).bets < 2 * len(ids) - 50


@pytest.mark.parametrize(("sequences", "least"), [(1, 1.0), (4, 0.8)])
def test_the_product_of_all_gains_has_mean_one_at_most(sequences, least):
    """Exactly: every file of twelve tokens of two kinds, by its probability; copies lose some."""
    log_p = np.log([0.3, 0.7])
    total = 0.0
    for number in range(2**12):
        ids = (number >> np.arange(12)) & 1
        values = log_p[ids]
        shape = (sequences, 12 // sequences)
        state = of(values.reshape(shape), ids.reshape(shape) + 5)
        total += np.exp(values.sum() + state.log_gain)
    assert least - 1e-12 < total < 1 + 1e-12


def worlds() -> list[Columns]:
    found = [world(16) for world in CLEAN_WORLDS.values()]
    mixtures = [cast(Mixture, world) for world in found if isinstance(world, Mixture)]
    return [world.sample(np.random.default_rng(0)) for world in mixtures]


def test_honest_samplers_win_nothing():
    for columns in worlds():
        assert RecallState.of(columns, "rollout").log_gain < 3
    assert sum(RecallState.of(columns, "rollout").log_gain for columns in read(demo_path())) < 0
