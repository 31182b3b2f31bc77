from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.clusters import cluster_keys
from kullback.columns import Columns, TopK, pack
from kullback.estimation.drawn import EVERY
from kullback.estimation.slope_state import SlopeState, pairs_of
from kullback.formulas.categorical import entropy, log_softmax
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, Mixture

WORLD = cast(Mixture, CLEAN_WORLDS["training_loop"](4))


def columns_of(log_a, log_b, ids_b=None) -> Columns:
    """One prefix with these heads."""
    ids = np.arange(len(log_a))[None]
    heads = {
        "a": TopK(ids, np.asarray(log_a, dtype=np.float64)[None]),
        "b": TopK(
            ids if ids_b is None else np.array([ids_b]), np.asarray(log_b, dtype=np.float64)[None]
        ),
    }
    return replace(pack({"a": [[-1.0]], "b": [[-1.0]]}), top_k=heads, tokens=np.array([0]))


def totals(state: SlopeState) -> dict[str, float]:
    return {term: state.total(term) for term in ("prefixes", "entries", "xx", "xy", "yy")}


def test_the_sums_are_of_what_both_list_less_its_mean():
    found = totals(SlopeState.of(columns_of([-1.0, -2.0, -4.0], [-0.5, -2.5, -9.0], [1, 0, 7]),
                                 ("a", "b")))  # fmt: skip
    # Both list ids 0 and 1: a has −1 and −2, b −2.5 and −0.5.
    assert found == pytest.approx({"prefixes": 1, "entries": 2, "xx": 2.0, "xy": -1.0, "yy": 0.5})


def test_two_temperatures_are_a_line_of_their_ratio():
    logits = np.array([2.0, 1.0, 0.2, -1.0])
    found = totals(SlopeState.of(columns_of(log_softmax(logits / 0.7), log_softmax(logits)),
                                 ("a", "b")))  # fmt: skip
    assert found["xy"] / found["xx"] == pytest.approx(1 / 0.7, rel=1e-12)
    assert found["yy"] == pytest.approx(found["xy"] ** 2 / found["xx"], rel=1e-12)


def test_one_prefix_of_sixteen_is_looked_at():
    columns = WORLD.sample(np.random.default_rng(0), top_k=10)
    state = SlopeState.of(columns, ("rollout", "old"))
    assert state.total("prefixes") == (-(-columns.lengths // EVERY)).sum()


def test_the_draws_tell_the_ratio_exactly_over_the_population():
    """E s² = b E s (−log p_b) at each prefix, where p_a is p_b at 1/b of its temperature."""
    rng = np.random.default_rng(0)
    for ratio in (0.5, 1.0, 1.25, 2.0):
        log_b = log_softmax(rng.normal(size=6))
        log_a = log_softmax(ratio * log_b)
        columns = replace(
            pack({"a": log_a[:, None], "b": log_b[:, None]}),
            entropy={"a": np.full(6, entropy(log_probs=log_a))},
            clusters=cluster_keys(range(6)),
        )
        # Each token is its own cluster, so that the sums can be weighed by its probability.
        order = np.argsort(columns.clusters)
        state = SlopeState.of(columns, ("a", "b"))
        own, cross = (state.by_group(term) @ np.exp(log_a[order]) for term in ("own", "cross"))
        assert own == pytest.approx(ratio * cross, rel=1e-12)


def test_missing_log_probs_and_certain_prefixes_do_not_count():
    columns = replace(
        pack({"a": [[-1.0, np.nan, -1.0, -1.0]], "b": [[-1.0, -1.0, -9999.0, -1.0]]}),
        entropy={"a": np.array([1.0, 1.0, 1.0, 0.1])},
    )
    assert SlopeState.of(columns, ("a", "b")).total("draws") == 1


def test_pairs_begin_with_the_sampler_and_need_heads_of_both():
    columns = WORLD.sample(np.random.default_rng(0), top_k=5)
    asked = [Question("current", "reference", "rollout"), Question("old", "current")]
    pairs = (("rollout", "current"), ("rollout", "reference"), ("old", "current"))
    assert pairs_of(columns, asked) == pairs


def test_without_heads_the_nearest_copy_needs_the_entropy_of_the_sampler():
    columns = WORLD.sample(np.random.default_rng(0))
    asked = [Question("rollout", role) for role in ("current", "old", "reference")]
    assert pairs_of(columns, asked) == (("rollout", "old"),)
    assert pairs_of(columns, asked[:1]) == (("rollout", "current"),)
    assert not pairs_of(replace(columns, entropy={}), asked)
