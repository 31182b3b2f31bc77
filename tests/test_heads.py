from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kullback.columns import TopK
from kullback.heads import ABSENT, cut, in_order, nominal, shared

IDS = st.integers(0, 9) | st.sampled_from([2**57, 2**57 + 1, 2**62, 2**63 - 1])
LISTS = st.dictionaries(IDS, st.floats(-9, 0), max_size=6)


def head_of(lists: list[dict[int, float]], width: int = 6) -> TopK:
    ids = np.full((len(lists), width), ABSENT)
    log_probs = np.full(ids.shape, np.nan)
    for row, entries in enumerate(lists):
        ids[row, : len(entries)] = list(entries)
        log_probs[row, : len(entries)] = list(entries.values())
    return TopK(ids, log_probs)


@given(st.lists(st.tuples(LISTS, LISTS), min_size=1, max_size=5))
def test_shared_is_what_both_list_with_the_log_probs_of_q(pairs):
    p, q = head_of([a for a, _ in pairs]), head_of([b for _, b in pairs])
    both = shared(p, q)
    for row, (a, b) in enumerate(pairs):
        found = {
            int(i): float(x)
            for i, x in zip(both.ids[row], both.log_probs[row], strict=True)
            if i != ABSENT
        }
        assert found == {i: b[i] for i in a if i in b}
        assert ((both.ids[row] == p.ids[row]) | (both.ids[row] == ABSENT)).all()


def test_lists_of_different_lengths_and_dtypes_are_joined():
    p = TopK(np.array([[4, 2, 7]]), np.array([[-1.0, -2.0, -3.0]], np.float32))
    q = TopK(np.array([[7, 4]]), np.array([[-0.5, -1.5]]))
    both = shared(p, q)
    assert both.ids.tolist() == [[4, ABSENT, 7]]
    assert both.log_probs[0, [0, 2]].tolist() == [-1.5, -0.5]


def test_what_has_no_log_prob_is_not_known_on_either_side():
    p = head_of([{1: -1.0, 2: np.nan, 3: -9999.0, 4: -np.inf}])
    q = head_of([{1: np.nan, 2: -1.0, 3: -1.0, 4: -1.0}])
    assert shared(p, q).ids[0, :4].tolist() == [ABSENT, ABSENT, ABSENT, 4]


def test_an_id_that_a_list_repeats_is_one_id():
    twice = TopK(np.array([[5, 5]]), np.array([[-1.0, -1.0]]))
    other = TopK(np.array([[5]]), np.array([[-2.0]]))
    assert sorted(shared(twice, other).ids[0].tolist()) == [ABSENT, 5]
    assert sorted(shared(other, twice).ids[0].tolist()) == [5]
    assert shared(twice, head_of([{}])).ids.tolist() == [[ABSENT, ABSENT]]


def test_the_appended_token_is_told_by_its_rank():
    """The token drawn was appended to the first list; the second ends where the engine ended."""
    ids = np.array([[9, 1, 2], [1, 2, ABSENT]])
    log_probs = np.array([[-5.0, -0.5, -2.0], [-0.5, -2.0, np.nan]])
    drawn = np.array([9, 1])
    head = in_order(ids, log_probs, drawn)
    assert nominal(head, drawn) == 2
    assert cut(head, 2).ids.tolist() == [[1, 2], [1, 2]]
