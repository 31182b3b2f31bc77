from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns, TopK, pack
from kullback.estimation.cut_state import BOTH, PLACES, ROW, CutState
from kullback.worlds import CLEAN_WORLDS, Mixture
from kullback.worlds.tables import kept_top_k, kept_top_p

WORLD = cast(Mixture, CLEAN_WORLDS["smooth"](4))
P = np.array([0.4, 0.3, 0.2, 0.06, 0.04])


def columns_of(tokens, logs) -> Columns:
    """Prefixes with this head, ids by rank."""
    tokens = np.asarray(tokens)
    table = np.tile(np.asarray(logs, dtype=np.float64), (len(tokens), 1))
    ids = np.tile(np.arange(table.shape[1]), (len(tokens), 1))
    packed = pack({"p": np.full((1, len(tokens)), -1.0)})
    return replace(packed, tokens=tokens, top_k={"p": TopK(ids, table)})


def column(state: CutState, *place) -> dict[str, float]:
    return dict(zip(ROW, state.sums[:, PLACES.index(place)], strict=True))


def test_what_is_kept_and_what_lies_beyond():
    """Ranks 0 and 1 were drawn: a top-k of 2, a top-p of 0.5 and a min-p of ½ are never left."""
    state = CutState.of(columns_of([0, 1, 0], np.log(P)), "p")
    for place in (("top-k", 2), ("top-p", 0.5), ("min-p", 0.5)):
        found = column(state, *place)
        kept = 0.9 if place[0] == "min-p" else 0.7  # 0.2 is half of 0.4
        assert found["told"] == 3, place
        assert found["expected"] == pytest.approx(3 * (1 - kept), rel=1e-12)
        assert found["log_kept"] == pytest.approx(-3 * np.log(kept), rel=1e-12)
        assert (found["firsts"], found["expected_firsts"]) == (2, pytest.approx(3 * 0.4 / kept))
    assert column(state, "top-k", 1)["told"] == 0  # rank 1 was drawn
    assert column(state, "top-p", 0.3)["told"] == 0  # 0.4 is likelier than what was drawn
    assert column(state, "top-k", 6)["told"] == 0  # no head reaches so far
    assert state.deepest == pytest.approx((1, 0.4, np.log(4 / 3)))


def test_a_token_outside_its_head_lies_beyond_all_that_the_head_reaches():
    state = CutState.of(columns_of([0, 9], np.log(P[:3])), "p")
    assert state.deepest == pytest.approx((3, 0.9, np.log(2)))
    assert not state.sums[:, [PLACES.index(("top-k", k)) for k in (1, 2, 3)]].any()


def test_a_tie_across_the_edge_tells_nothing():
    logs = np.log([0.4, 0.3, 0.1, 0.1, 0.1])
    state = CutState.of(columns_of([0, 1], logs), "p")
    assert column(state, "top-k", 3)["told"] == 0
    assert column(state, "top-k", 2)["told"] == 2
    assert column(state, "top-k", 5)["told"] == 2


@pytest.mark.parametrize("cut", [("top-k", 3), ("top-p", 0.8), ("min-p", 0.2)])
def test_staying_inside_has_no_more_than_its_chance(cut):
    """E over the draws of 1[inside]/m = 1 at most, whatever is kept."""
    gain = 0.0
    for token, p in enumerate(P):
        found = column(CutState.of(columns_of([token], np.log(P)), "p"), *cut)
        gain += p * np.exp(found["log_kept"]) * (found["told"] > 0)
    assert gain == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("cut", "table"),
    [(("top-k", 20), kept_top_k), (("top-p", 0.9), kept_top_p)],
)
def test_the_other_role_is_weighed_over_the_same_set(cut, table):
    mine, theirs = WORLD.log_probs["rollout"], WORLD.log_probs["reference"]
    kept = table(mine, cut[1])
    draw = WORLD.draw(np.random.default_rng(0), kept)
    state = CutState.of(WORLD.logged(draw, top_k=1999), "rollout")
    rows = dict(zip(BOTH, state.others["reference"][:, PLACES.index(cut)], strict=True))
    few = draw.contexts[np.arange(len(draw.contexts)) % 100 % 16 == 0]  # 100 tokens a sequence
    inside = np.isfinite(kept)
    mass = np.where(inside, np.exp(theirs), 0.0).sum(axis=1)[few]
    kl = np.where(inside, np.exp(kept) * (np.where(inside, kept, 0.0) - theirs), 0.0).sum(axis=1)
    assert rows["looked"] == rows["listed"] == len(few)
    assert rows["kept"] == pytest.approx(mass.sum(), rel=1e-9)
    assert rows["kl"] == pytest.approx(kl[few].sum(), rel=1e-9)


@pytest.mark.parametrize("k", [20, 5])
def test_parts_add_up(k):
    draw = WORLD.draw(np.random.default_rng(0), kept_top_k(WORLD.log_probs["rollout"], k))
    columns = WORLD.logged(draw, top_k=30)
    parts = [CutState.of(columns.take(half), "rollout") for half in (slice(9), slice(9, None))]
    whole, added = CutState.of(columns, "rollout"), parts[0] + parts[1]
    assert added.sums == pytest.approx(whole.sums, rel=1e-12)
    assert added.others["reference"] == pytest.approx(whole.others["reference"], rel=1e-12)
    assert (added.deepest, added.prefixes, added.longest) == (
        whole.deepest,
        whole.prefixes,
        whole.longest,
    )
