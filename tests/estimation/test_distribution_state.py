from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns, TopK, pack
from kullback.estimation.distribution_state import DistributionState
from kullback.worlds import CLEAN_WORLDS, Mixture
from kullback.worlds.faults import rounded_to_bf16

NAN, INF = float("nan"), float("inf")


def batch(heads, sampled, tokens, ids=None, mask=None) -> Columns:
    """One sequence; the heads are probabilities of the ids 0, 1, …; NaN ends a shorter one."""
    with np.errstate(divide="ignore"):
        logs, log_p = np.log(np.array(heads, dtype=float)), np.log(np.array([sampled], dtype=float))
    ids = np.where(np.isnan(logs), -1, np.arange(logs.shape[1])) if ids is None else np.array(ids)
    columns = pack({"p": log_p, "q": log_p}, mask=mask)
    return replace(columns, tokens=np.array(tokens), top_k={"p": TopK(ids, logs)})


def of(*args, **kwargs) -> DistributionState:
    return DistributionState.of(batch(*args, **kwargs), "p")


def test_a_head_that_weighs_one_is_no_fault() -> None:
    state = of([[0.7, 0.2], [0.6, 0.4]], [0.7, 0.4], [0, 1])
    assert (state.heads, state.heavy, state.differing, state.first) == (2, 0, 0, {})
    assert state.mass == pytest.approx(1.0)


def test_a_head_above_one_is_counted_with_its_place_and_weight() -> None:
    state = of([[0.7, 0.2], [0.9, 0.4], [0.8, 0.3]], [0.7, 0.4, 0.8], [0, 1, 0])
    assert (state.heads, state.heavy) == (3, 2)
    assert state.mass == pytest.approx(1.3)
    assert str(state.first["heavy"]) == "row 0, token 1"


def test_a_sampled_token_outside_the_head_weighs_too() -> None:
    assert of([[0.7, 0.2]], [0.3], [5]).heavy == 1
    assert of([[0.7, 0.2]], [0.1], [5]).heavy == 0
    assert of([[0.7, 0.2]], [NAN], [5]).heavy == 0


@pytest.mark.parametrize(("total", "heavy"), [(1.005, 0), (1.02, 1)])
def test_a_hundredth_is_left_to_rounding(total: float, heavy: int) -> None:
    assert of([[total / 2, total / 2]], [total / 2], [0]).heavy == heavy


@pytest.mark.parametrize(("sampled", "differing"), [(0.25, 1), (0.495, 0), (0.5, 0), (0.0, 1)])
def test_a_sampled_token_has_the_log_prob_of_its_id_in_the_head(sampled, differing) -> None:
    state = of([[0.5, 0.3]], [sampled], [0])
    assert state.differing == differing
    assert state.difference == (pytest.approx(np.log(0.5 / sampled)) if 0 < sampled < 0.4 else
                                INF if sampled == 0 else 0.0)  # fmt: skip


def test_what_was_not_logged_or_does_not_count_contradicts_nothing() -> None:
    assert of([[0.5, 0.3]] * 3, [NAN, 0.25, 0.5], [0, 0, 0], mask=[[1, 0, 1]]).differing == 0
    assert of([[0.5, NAN], [NAN, NAN]], [0.5, 0.9], [0, 0]).heads == 1


@pytest.mark.parametrize(("lowest", "negative"), [(-0.05, 0), (-0.2, 1)])
def test_an_entropy_of_tokens_is_not_negative(lowest: float, negative: int) -> None:
    columns = replace(batch([[0.5, 0.3]] * 2, [0.5, 0.5], [0, 0]), top_k={})
    columns = replace(columns, entropy={"p": np.array([1.0, lowest])})
    state = DistributionState.of(columns, "p")
    assert (state.heads, state.entropies, state.negative) == (0, 2, negative)
    assert state.lowest == lowest
    density = DistributionState.of(replace(columns, tokens=None), "p")
    assert density.negative == 0


def test_adding_counts_both_and_keeps_the_first_place() -> None:
    good, bad = [[0.7, 0.2]], [[0.9, 0.4]]
    a, b = of(good, [0.7], [0]), of(bad, [0.3], [1])
    both = a + b + b
    assert (both.heads, both.heavy, both.differing) == (3, 2, 2)
    assert both.mass == pytest.approx(1.3)
    assert both.difference == pytest.approx(np.log(4 / 3))
    assert str(both.first["heavy"]) == "row 0, token 0"


@pytest.mark.parametrize("rounded", [False, True])
def test_honest_heads_pass_in_any_precision(rounded: bool) -> None:
    for name in ("smooth", "very_peaked_policy"):
        world = CLEAN_WORLDS[name](4)
        assert isinstance(world, Mixture)
        sample = world.sample(np.random.default_rng(0), top_k=200)
        if rounded:
            head = sample.top_k["rollout"]
            sample = replace(
                sample,
                log_probs={r: rounded_to_bf16(v) for r, v in sample.log_probs.items()},
                top_k={"rollout": TopK(head.ids, rounded_to_bf16(head.log_probs))},
            )
        state = DistributionState.of(sample, "rollout")
        assert (state.heads, state.heavy, state.differing) == (len(sample), 0, 0)


def test_heads_of_no_entry_are_no_heads() -> None:
    state = of([[], []], [0.5, 0.2], [0, 1])
    assert (state.heads, state.heavy, state.differing, state.first) == (0, 0, 0, {})
