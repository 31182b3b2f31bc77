from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.diagnosis.padding import diagnose_padding
from kullback.estimation.summary import summarize
from kullback.formulas.categorical import log_softmax
from kullback.worlds import CLEAN_WORLDS, Mixture, Tabular
from kullback.worlds.faults import padding_counted
from kullback.worlds.tabular import tree


def found(columns: Columns):
    return diagnose_padding(summarize([columns])).findings


def one_prefix(alphabet: int, ends: bool, sharpness: float = 1.0) -> Tabular:
    """A language of six tokens at most whose policies look at no prefix: runs are everywhere."""
    eos = alphabet - 1 if ends else None
    contexts = len(tree(alphabet, 6, eos).contexts)
    rng = np.random.default_rng(alphabet)
    policy = sharpness * rng.normal(size=alphabet)
    rows = {"rollout": policy, "reference": policy + 0.3 * rng.normal(size=alphabet)}
    tables = {role: np.tile(log_softmax(row), (contexts, 1)) for role, row in rows.items()}
    return Tabular(tables, "rollout", 6, eos, sequences=64)


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("alphabet", [2, 3, 4])
@pytest.mark.parametrize("sharpness", [0.0, 1.0, 3.0])
def test_a_policy_that_looks_at_no_prefix_has_no_padding(alphabet, ends, ids, sharpness):
    world = one_prefix(alphabet, ends, sharpness)
    for seed in range(20):
        columns = world.sample(np.random.default_rng(seed))
        assert not found(columns if ids else replace(columns, tokens=None))


@pytest.mark.parametrize("alphabet", [3, 4])
def test_its_padding_is_found_all_the_same(alphabet):
    columns = padding_counted(one_prefix(alphabet, True).sample(np.random.default_rng(0)), extra=2)
    assert [f.code for f in found(columns)] == ["mask-covers-padding"]
    assert [f.code for f in found(replace(columns, tokens=None))] == ["mask-covers-padding"]


def test_a_wall_at_which_a_policy_stays_is_no_padding():
    """From a state that is not left the same action comes again, with its own probability."""
    rng = np.random.default_rng(0)
    columns = pack({"p": np.full((200, 12), np.log(0.8)), "q": np.full((200, 12), np.log(0.9))})
    actions = np.where(rng.random((200, 12)) < 0.8, 1, 0)
    start = np.arange(12) < rng.integers(1, 5, size=(200, 1))
    values = np.where(start, -1 - rng.random((200, 12)), np.log(np.where(actions, 0.8, 0.2)))
    policy = {role: values.ravel() + shift for role, shift in (("p", 0.0), ("q", 0.1))}
    columns = replace(columns, log_probs=policy, tokens=(actions + 2 * start).ravel())
    assert not found(columns)


@pytest.mark.parametrize("ids", [True, False])
def test_a_policy_that_draws_nothing_has_no_padding(ids):
    """From its start it walks to a wall, and stays there to the end."""
    steps = np.arange(1, 41) % 5
    actions = np.where(np.arange(12) < steps[:, None], 1, 0)
    q = -0.2 - 0.1 * steps[:, None] * actions
    columns = pack({"p": np.zeros((40, 12)), "q": q})
    assert not found(replace(columns, tokens=actions.ravel()) if ids else columns)


WORLD = cast(Mixture, CLEAN_WORLDS["random_lengths"](16))
PAD = 5


def scored(columns: Columns, rng: np.random.Generator) -> Columns:
    """Padding by one id, counted, to which every role gave log-probs as to any token."""
    padded = padding_counted(columns)
    tokens = np.asarray(padded.tokens)
    behind = np.arange(len(padded)) % padded.lengths[0] >= np.repeat(
        columns.lengths, padded.lengths
    )
    shared = -3.0 - rng.gamma(2.0, 1.0, size=len(padded))
    log_probs = {
        role: np.where(behind, shared + 0.1 * rng.normal(size=len(padded)), values)
        for role, values in padded.log_probs.items()
    }
    return replace(padded, tokens=np.where(behind, PAD, tokens), log_probs=log_probs, entropy={})


@pytest.mark.parametrize("seed", range(3))
def test_padding_that_every_role_scored_is_told_by_its_id(seed):
    rng = np.random.default_rng(seed)
    columns = scored(WORLD.sample(rng), rng)
    (finding,) = found(columns)
    assert finding.code == "mask-covers-padding"
    assert finding.numbers["token"] == PAD
    assert "would bring by its own log-probs" in finding.claim


def test_a_few_rows_suffice_where_others_have_the_id_behind_their_mask():
    """As a mask has it that was made from the place of the end: rows without one count all."""
    rng = np.random.default_rng(0)
    clean = WORLD.sample(rng)
    columns = scored(clean, rng)
    position = np.arange(len(columns)) % columns.lengths[0]
    inside = position < np.repeat(clean.lengths, columns.lengths)
    counted = np.repeat(np.arange(len(clean.lengths)) < 4, columns.lengths)
    (finding,) = found(replace(columns, mask=inside | counted))
    assert finding.numbers["sequences"] == 4
    assert not found(replace(columns, mask=inside))


def test_a_token_that_the_sampler_expects_again_is_no_padding():
    rng = np.random.default_rng(0)
    values = rng.normal(-2.0, 0.5, size=(60, 20))
    tokens = rng.integers(10, 1000, size=(60, 20))
    tokens[:20, 8:], values[:20, 8:] = PAD, -0.01 * rng.random((20, 12))
    columns = pack({"p": values, "q": values - 0.01 * rng.random((60, 20))})
    assert not found(replace(columns, tokens=tokens.ravel()))
