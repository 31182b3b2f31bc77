from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.columns import pack
from kullback.estimation.question_state import QuestionState
from kullback.formulas.k_family import k3
from kullback.question import Question
from kullback.reporting.spread import BARS, even_edges, octaves, per_sequence, per_token

PROPERTY = settings(derandomize=True, deadline=None, max_examples=200)
rng = np.random.default_rng(0)
P = rng.normal(-2.0, 0.5, size=(400, 20))
Q = P + 0.1 * rng.standard_cauchy(P.shape).clip(-30, 30)
STATE = QuestionState.of(pack({"p": P, "q": Q}), Question("p", "q"))


def test_every_token_is_in_one_bin_with_its_k3():
    bins = octaves(STATE)
    assert [one["high"] for one in bins[:-1]] == [one["low"] for one in bins[1:]]
    assert sum(one["tokens"] for one in bins) == P.size
    assert sum(one["k3"] for one in bins) == pytest.approx(k3(Q - P).sum(), rel=0.1)
    k1 = P - Q
    for one in bins:
        inside = (k1 > one["low"]) & (k1 <= one["high"])
        assert one["tokens"] == inside.sum()


def test_every_sequence_is_in_one_bar_or_beyond():
    told = per_sequence(STATE)
    means = (P - Q).mean(axis=1)
    assert sum(one["sequences"] for one in told["bins"]) + told["below"] + told["above"] == 400
    assert (told["min"], told["max"]) == (means.min(), means.max())
    assert told["p50"] == pytest.approx(np.median(means), abs=2e-3)
    below = (means < told["bins"][0]["low"]).sum()
    assert told["below"] == below <= 8


def test_where_nothing_differs_there_is_nothing_to_draw():
    same = QuestionState.of(pack({"p": P, "q": P}), Question("p", "q"))
    assert octaves(same) == []
    assert per_sequence(same)["bins"] == []
    assert per_token(same)["k1"]["std"] == 0


@PROPERTY
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_bars_hold_both_ends_and_are_about_as_many_as_meant(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    edges = even_edges(low, high)
    if not len(edges):
        assert high - low <= max(1e-12 * max(abs(low), abs(high)), 1e-300)
        return
    slack = 1e-9 * (edges[1] - edges[0])
    assert edges[0] <= low + slack
    assert high < edges[-1] + slack
    assert BARS / 2.5 <= len(edges) - 1 <= BARS + 2
