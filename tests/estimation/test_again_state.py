from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.estimation.again_state import AgainState, Products

NAN = float("nan")


def batch(rows, tokens, *, prompts=None, mask=None, also=None, **changes) -> Columns:
    columns = pack({"p": rows} | (also or {}), mask=mask, clusters=prompts)
    return replace(columns, tokens=np.array(tokens).ravel(), **changes)


def test_tokens_behind_one_prefix_are_compared_and_no_others() -> None:
    rows = [[-1.0, -2.0, -4.0], [-1.5, -2.0, -9.0], [-7.0, -7.0, -7.0]]
    state = AgainState.of(batch(rows, [[1, 2, 3], [1, 2, 4], [5, 2, 3]], prompts=[7, 7, 7]))
    seen = state.roles["p"]
    assert (seen.tokens, seen.differing, seen.largest) == (2, 1, 0.5)
    assert seen.noise == 0.25 / 4
    assert str(seen.first) == "row 1, token 0"


def test_rows_are_put_beside_those_that_begin_most_alike() -> None:
    tokens = [[1, 2, 3], [1, 9, 9], [1, 2, 3], [1, 9, 9]]
    state = AgainState.of(batch(np.full((4, 3), -1.0), tokens, prompts=[7] * 4))
    assert state.roles["p"].tokens == 3 + 3 + 1


def test_other_prompts_steps_settings_and_versions_are_other_prefixes() -> None:
    rows, tokens = [[-1.0, -2.0], [-1.5, -2.0]], [[1, 2], [1, 2]]

    def pairs(prompts=(7, 7), **changes) -> int:
        return AgainState.of(batch(rows, tokens, prompts=prompts, **changes)).roles["p"].tokens

    assert pairs() == 2
    assert pairs(prompts=(7, 8)) == 0
    assert pairs(labels={"step": np.array([3, 3])}) == 2
    assert pairs(labels={"step": np.array([3, 4])}) == 0
    assert pairs(labels={"sampling.temperature": np.array([1.0, 0.5])}) == 0
    assert pairs(labels={"reward": np.array([1.0, 0.5])}) == 2
    assert pairs(versions=np.array([0, 0, 0, 1])) == 1


def test_what_stands_before_the_mask_belongs_to_the_prefix() -> None:
    rows, mask = [[-1.0, -2.0, -3.0]] * 2, [[0, 1, 1], [0, 1, 1]]
    same = batch(rows, [[9, 1, 2], [9, 1, 2]], prompts=[7, 7], mask=mask)
    other = batch(rows, [[9, 1, 2], [8, 1, 2]], prompts=[7, 7], mask=mask)
    assert AgainState.of(same).roles["p"].tokens == 2
    assert AgainState.of(other).roles["p"].tokens == 0


def test_the_first_token_outside_the_mask_ends_what_is_shared() -> None:
    mask = [[1, 0, 1], [1, 0, 1]]
    state = AgainState.of(batch([[-1.0] * 3] * 2, [[1, 2, 3]] * 2, prompts=[7, 7], mask=mask))
    assert state.roles["p"].tokens == 1


def test_without_prompts_only_rows_that_nobody_draws_twice_are_known_again() -> None:
    tokens = [[1, 2, 3, 4], [1, 2, 3, 4]]
    assert AgainState.of(batch([[-7.0] * 4] * 2, tokens)).roles["p"].tokens == 0  # 28 nats
    assert AgainState.of(batch([[-8.0] * 4] * 2, tokens)).roles["p"].tokens == 4  # 32
    other = [[1, 2, 3, 4], [1, 2, 3, 5]]
    assert AgainState.of(batch([[-8.0] * 4] * 2, other)).roles["p"].tokens == 0


def test_what_is_missing_for_one_role_is_seen_of_the_others() -> None:
    rows, also = [[-1.0, NAN], [-1.5, -2.0]], {"q": [[-1.0, -3.0], [-1.0, -2.0]]}
    state = AgainState.of(batch(rows, [[1, 2], [1, 2]], prompts=[7, 7], also=also))
    assert (state.roles["p"].tokens, state.roles["q"].tokens) == (1, 2)
    assert state.products == {("p", "q"): Products(0.0, 0.25, 0.0)}


def test_noise_of_two_roles_is_uncorrelated_and_another_prefix_moves_both() -> None:
    rng = np.random.default_rng(0)
    tokens, prompts = np.tile(np.arange(16), (64, 1)), np.repeat(np.arange(32), 2)
    clean = np.repeat(-rng.gamma(1.0, 1.0, size=(32, 16)), 2, axis=0)
    noisy = {r: clean + 0.1 * rng.standard_normal(clean.shape) for r in ("q", "r")}
    state = AgainState.of(batch(clean, tokens, prompts=prompts, also=noisy))
    assert state.roles["p"].noise == 0
    assert state.roles["q"].noise == pytest.approx(0.01, rel=0.2)
    assert state.roles["q"].spread == pytest.approx(1.0, rel=0.3)
    assert abs(state.correlation("q")) < 0.2
    assert np.isnan(state.correlation("p"))
    moved = -rng.gamma(1.0, 1.0, size=clean.shape)
    near = moved + 0.1 * rng.standard_normal(clean.shape)
    other = AgainState.of(batch(moved, tokens, prompts=prompts, also={"q": near, "r": moved}))
    assert other.correlation("p") > 0.9
    assert ("p", "r") not in other.products  # a copy of a column is no second witness


def test_adding_counts_both() -> None:
    rows, tokens = [[-1.0, -2.0], [-1.5, -2.0]], [[1, 2], [1, 2]]
    also = {"q": [[-1.0, -3.0], [-1.0, -2.0]]}
    one = AgainState.of(batch(rows, tokens, prompts=[7, 7], also=also))
    both = one + one
    assert (both.roles["p"].tokens, both.roles["p"].squares) == (4, 0.5)
    assert both.products == {("p", "q"): Products(0.0, 0.5, 2.0)}
    empty = AgainState.of(pack({"p": np.zeros((0, 0)), "q": np.zeros((0, 0))}))
    assert (one + empty).roles == (empty + one).roles == one.roles
    assert not (one + empty).by_step
