"""Top-k lists to heads: what the engine appended is found by rank, in every order and layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.columns import TopK
from kullback.dumps.heads import ranked
from kullback.dumps.ragged import Ragged
from kullback.heads import ABSENT, cut, nominal

TOKENS, VOCABULARY, K = 400, 12, 4


def lists_of(rows: list[list[tuple[int, float]]]) -> tuple[Ragged, Ragged]:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    known = np.ones(len(rows), dtype=bool)
    flat = [pair for row in rows for pair in row]
    ids = np.array([i for i, _ in flat], dtype=np.int64)
    return Ragged(ids, lengths, known), Ragged(np.array([x for _, x in flat]), lengths, known)


def head_of(rows: list[list[tuple[int, float]]], tokens: list[int]) -> TopK:
    drawn = np.array(tokens)
    head = ranked(*lists_of(rows), drawn)
    return cut(head, nominal(head, drawn))


def world(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Log-probs of a small vocabulary at many prefixes, and a sampled token at each."""
    random = np.random.default_rng(seed)
    logits = 2 * random.normal(size=(TOKENS, VOCABULARY))
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    drawn = [random.choice(VOCABULARY, p=np.exp(row)) for row in log_probs]
    return log_probs, np.array(drawn)


LOG_PROBS, DRAWN = world()
LARGEST = np.argsort(-LOG_PROBS, axis=1)[:, :K]


def engine(layout: str) -> list[list[tuple[int, float]]]:
    """The lists of an engine asked for the top 4, as different engines give them."""
    rows = []
    for log_probs, largest, drawn in zip(LOG_PROBS, LARGEST, DRAWN, strict=True):
        ids = largest.tolist()
        if layout == "appended" and drawn not in ids:
            ids = [*ids, drawn]
        if layout == "first":
            ids = [drawn, *(i for i in ids if i != drawn)]
        if layout == "first and at its rank":
            ids = [drawn, *ids]
        if layout == "unsorted":
            ids = ids[::-1]
        rows.append([(int(i), float(log_probs[i])) for i in ids])
    return rows


@pytest.mark.parametrize(
    "layout", ["plain", "appended", "first", "first and at its rank", "unsorted"]
)
def test_the_head_is_the_top_k_whatever_the_engine_lists(layout: str):
    head = head_of(engine(layout), DRAWN.tolist())
    np.testing.assert_array_equal(head.ids, LARGEST)
    np.testing.assert_array_equal(head.log_probs, np.take_along_axis(LOG_PROBS, LARGEST, axis=1))


def test_lists_cut_short_by_top_p_keep_their_last_entry_even_if_it_was_drawn():
    rows = [[(1, -0.1), (2, -2.4)], [(3, -0.2), (4, -2.0), (5, -3.2)], [(6, -0.01)]]
    head = head_of(rows, [2, 4, 6])
    assert head.ids.tolist() == [[1, 2, ABSENT], [3, 4, 5], [6, ABSENT, ABSENT]]


def test_when_every_longest_list_ends_in_the_drawn_token_all_are_cut_alike():
    rows = [[(1, -0.5), (2, -2.0), (9, -5.0)], [(1, -0.5), (2, -2.0)]]
    assert head_of(rows, [9, 1]).ids.tolist() == [[1, 2], [1, 2]]


def test_a_list_of_the_drawn_token_alone_is_no_head():
    rows = [[(4, -0.5)], [(7, -1.0)]]
    drawn = np.array([4, 7])
    assert nominal(ranked(*lists_of(rows), drawn), drawn) == 0
    assert nominal(ranked(*lists_of([[], []]), drawn), drawn) == 0


def test_among_equal_log_probs_the_appended_token_goes():
    # The engine listed 1 and 2; 9 is as likely as 2 and was appended because it was drawn.
    rows = [[(9, -2.0), (1, -0.5), (2, -2.0)], [(1, -0.5), (2, -2.0)]]
    assert head_of(rows, [9, 1]).ids.tolist() == [[1, 2], [1, 2]]


def test_an_entry_without_id_or_log_prob_is_left_out():
    head = ranked(*lists_of([[(1, np.nan), (ABSENT, -1.0), (2, -3.0)]]), np.array([2]))
    assert head.ids.tolist() == [[2, ABSENT, ABSENT]]
    np.testing.assert_array_equal(head.log_probs, [[-3.0, np.nan, np.nan]])


def test_impossible_and_clamped_entries_keep_their_rank():
    head = ranked(*lists_of([[(1, -np.inf), (2, -9999.0), (3, -0.1)]]), None)
    assert head.ids.tolist() == [[3, 2, 1]]


def test_a_stated_k_may_differ_from_list_to_list():
    head = ranked(*lists_of([[(1, -1.0), (2, -2.0)], [(3, -1.0), (4, -2.0)]]), None)
    assert cut(head, np.array([1, 2])).ids.tolist() == [[1, ABSENT], [3, 4]]


ENTRIES = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from([-0.5, -1.0, -1.5, -2.0, -3.0])),
    max_size=6,
    unique_by=lambda pair: pair[0],
)


@given(st.lists(st.tuples(ENTRIES, st.integers(0, 6)), min_size=1, max_size=8), st.randoms())
@settings(derandomize=True)
def test_the_order_in_the_file_does_not_matter_and_heads_descend(rows, random):
    drawn = np.array([token for _, token in rows])
    given_order = ranked(*lists_of([row for row, _ in rows]), drawn)
    shuffled = ranked(*lists_of([random.sample(row, len(row)) for row, _ in rows]), drawn)
    np.testing.assert_array_equal(given_order.log_probs, shuffled.log_probs)
    known = ~np.isnan(given_order.log_probs)
    assert (known == (given_order.ids != ABSENT)).all()
    assert (known[:, 1:] <= known[:, :-1]).all()
    steps = np.diff(np.nan_to_num(given_order.log_probs, nan=-99.0), axis=1)
    assert (steps <= 0).all()
    assert nominal(given_order, drawn) == nominal(shuffled, drawn)
