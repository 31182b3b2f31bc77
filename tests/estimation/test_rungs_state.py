from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.columns import TopK
from kullback.estimation import rungs_state
from kullback.estimation.rungs_state import NAMES, RungsState, too_heavy
from kullback.estimation.terms import Usable
from kullback.formulas import partial
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, Mixture

ASKED = Question("rollout", "reference")
WORLD = CLEAN_WORLDS["smooth"](24)


def batch(seed: int = 0) -> kb.Columns:
    assert isinstance(WORLD, Mixture)
    return WORLD.sample(np.random.default_rng(seed), exact=True, top_k=5)


def state(columns: kb.Columns, asked: Question = ASKED) -> RungsState:
    return RungsState.of(columns, asked, Usable.of(columns, asked))


def by_hand(columns: kb.Columns) -> dict[str, float]:
    """The sums of one batch, a token at a time."""
    sums: dict[str, float] = dict.fromkeys(NAMES, 0.0)
    p, q = columns.top_k["rollout"], columns.top_k["reference"]
    log_r = columns.log_probs["reference"] - columns.log_probs["rollout"]
    exact = columns.exact[str(ASKED)]
    assert columns.tokens is not None
    for t in range(len(columns)):
        mine, theirs = (
            dict(zip(h.ids[t].tolist(), h.log_probs[t].tolist(), strict=True)) for h in (p, q)
        )
        both = [i for i in mine if i in theirs and i >= 0]
        head = partial.head(log_p=[mine[i] for i in both], log_q=[theirs[i] for i in both])
        inside = columns.tokens[t] in both
        draw: dict[str, Any] = {"log_q_over_p": log_r[t], "inside": inside, "head": head}
        control, guess = partial.head_control(inside=inside, head=head), partial.centre(head)
        one = partial.conditional(**draw)
        # Given the prefix, E[form · control] over the head is known, and the rest was drawn.
        cross = (0.0 if inside else one * control) - head.p * head.mean * head.p_tail
        bound = 0.0 if np.isnan(exact[t]) else float(partial.lower_bound(head))
        added = {
            "headed": bool(both),
            "conditional": one + log_r[t],
            "control": control,
            "centred": guess * control,
            "cross": cross,
            "cross_centred": guess * cross,
            "spread": head.p * head.p_tail,
            "spread_both": guess * head.p * head.p_tail,
            "spread_centred": guess**2 * head.p * head.p_tail,
            "tail": partial.tail_control(**draw),
            "bound": partial.lower_bound(head),
            "biased_head": partial.biased_head(head),
            "biased_head_renormalized": partial.biased_head_renormalized(head),
            "known": not np.isnan(exact[t]),
            "known_exact": np.nan_to_num(exact[t]),
            "known_bound": bound,
            "known_cross": bound * np.nan_to_num(exact[t]),
            "known_square": bound**2,
            "known_k3": 0.0 if np.isnan(exact[t]) else kb.k3(draw["log_q_over_p"]),
        }
        sums = {name: sums[name] + float(added[name]) for name in NAMES}
    return sums


def some_known(columns: kb.Columns) -> kb.Columns:
    exact = columns.exact[str(ASKED)].copy()
    exact[np.random.default_rng(3).random(len(exact)) > 0.1] = np.nan
    return replace(columns, exact={str(ASKED): exact})


def test_every_row_is_the_sum_of_its_formula(monkeypatch):
    columns = some_known(batch()).take(np.arange(6))
    expected = by_hand(columns)
    for entries in (1 << 20, 64):  # in one piece, and in pieces of six tokens
        monkeypatch.setattr(rungs_state, "ENTRIES", entries)
        found = state(columns)
        for name in NAMES:
            assert found.total(name) == pytest.approx(expected[name], rel=1e-9, abs=1e-12), name
    assert expected["known"] > 10
    assert abs(expected["tail"]) > 0


def test_two_batches_add_to_the_state_of_both():
    columns = some_known(batch())
    halves = columns.take(np.arange(60)), columns.take(np.arange(60, len(columns.lengths)))
    whole, summed = state(columns), state(halves[0]) + state(halves[1])
    np.testing.assert_array_equal(whole.groups.keys, summed.groups.keys)
    np.testing.assert_allclose(whole.groups.sums, summed.groups.sums, rtol=1e-12, atol=1e-12)


def test_nothing_adds_nothing():
    columns = batch()
    plain = replace(columns, top_k={}, exact={})
    for nothing in (RungsState.empty(), state(plain)):
        assert not len(nothing.groups.keys)
        assert (state(columns) + nothing).groups is not None
        for one in (state(columns) + nothing, nothing + state(columns)):
            np.testing.assert_array_equal(one.groups.sums, state(columns).groups.sums)


@pytest.mark.parametrize(
    "columns",
    [
        replace(batch(), tokens=None, token_bytes=None, text=None, exact={}),
        replace(batch(), top_k={"rollout": batch().top_k["rollout"]}, exact={}),
    ],
    ids=["without ids", "one side only"],
)
def test_heads_need_the_ids_and_both_sides(columns):
    assert not state(columns).total("headed")


def test_a_third_sampler_has_no_rungs():
    columns = batch()
    third = replace(columns, log_probs={**columns.log_probs, "old": columns.log_probs["rollout"]})
    assert not len(state(third, Question("old", "reference", "rollout")).groups.keys)


def test_a_head_that_weighs_more_than_1_is_counted_and_not_used():
    columns = batch()
    p = columns.top_k["rollout"]
    logs = p.log_probs.copy()
    logs[[3, 9]] = 0.5
    found = state(replace(columns, top_k=dict(columns.top_k) | {"rollout": TopK(p.ids, logs)}))
    assert found.heavy == 2
    assert found.total("headed") == state(columns).total("headed") - 2
    assert np.isfinite(found.groups.sums).all()
    assert too_heavy(TopK(p.ids, logs)).nonzero()[0].tolist() == [3, 9]
    assert (found + found).heavy == 4


def test_what_stands_at_unusable_tokens_is_never_read():
    columns = batch()
    mask = columns.mask.copy()
    mask[::3] = False
    clean = state(replace(columns, mask=mask))
    spoiled = dict(columns.top_k)
    for role in ("rollout", "reference"):
        logs = spoiled[role].log_probs.copy()
        logs[::3] = np.inf
        spoiled[role] = TopK(spoiled[role].ids, logs)
    found = state(replace(columns, mask=mask, top_k=spoiled))
    np.testing.assert_array_equal(found.groups.sums, clean.groups.sums)
    assert found.heavy == 0


def test_the_controls_have_mean_0_over_the_draws():
    totals = [state(batch(seed)) for seed in range(40)]
    for name in ("control", "centred", "tail"):
        sums = np.array([one.total(name) for one in totals])
        assert abs(sums.mean()) < 4 * sums.std(ddof=1) / np.sqrt(len(sums))
        assert sums.std() > 0
