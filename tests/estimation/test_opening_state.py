from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from kullback.columns import pack
from kullback.estimation.opening_state import OpeningState, SharedState
from kullback.estimation.role_sums import Logged


def of(rows, mask=None, tokens=None) -> OpeningState:
    columns = pack({"p": rows, "q": np.full(np.shape(rows), -2.0)}, mask=mask)
    if tokens is not None:
        columns = replace(columns, tokens=np.array(tokens).ravel())
    return OpeningState.of(columns, "p")[0]


def test_an_opening_is_a_run_from_the_first_token_inside_the_mask() -> None:
    state = of([[0, nan, -1, 0], [-1, 0, -1, -1], [-9999, -1, -1, -1]])
    assert (state.sequences, state.opened, state.tokens) == (3, 2, 3)
    assert (state.scored, state.elsewhere) == (7, 1)  # the last 0 stands at the other end
    assert state.others == {"q": Logged(3, -6.0)}
    assert str(state.first) == "row 0, token 0"


def test_what_stands_outside_the_mask_is_no_opening() -> None:
    state = of([[0, 0, -1, -1], [-1, 0, -1, -1]], mask=[[0, 1, 1, 1], [0, 0, 1, 1]])
    assert (state.opened, state.tokens, state.elsewhere) == (1, 1, 0)
    assert str(state.first) == "row 0, token 1"


def test_a_sequence_without_a_score_has_no_opening() -> None:
    state = of([[0, 0], [nan, nan], [-1, -1]])
    assert (state.sequences, state.opened, state.tokens, state.elsewhere) == (1, 0, 0, 0)


def test_openings_of_the_same_ids_are_of_one_kind() -> None:
    state = of([[0, -1], [0, -1], [0, -1]], tokens=[[5, 1], [5, 2], [6, 3]])
    assert sorted(state.kinds.values()) == [1, 2]
    assert of([[0, -1]]).kinds == {None: 1}


def shared(rows, tokens, mask=None, prompts=None, kind: str = "prompt") -> SharedState:
    columns = pack({"p": rows}, mask=mask, clusters=prompts)
    columns = replace(columns, tokens=np.array(tokens).ravel(), cluster_kind=kind)
    return SharedState.of(columns, "p")


def test_a_pair_shares_what_the_second_was_surprised_by() -> None:
    state = shared([[-1, -2, -4], [-8, -16, -32]], [[1, 2, 3], [1, 2, 4]], prompts=[7, 7])
    assert (state.pairs, state.alike, state.tokens, state.surprise) == (1, 1, 2, 24.0)
    assert str(state.first) == "row 1, token 0"


def test_pairs_are_of_one_prompt_and_each_sequence_is_in_one() -> None:
    rows, tokens = np.full((5, 2), -1.0), [[1, 2], [1, 3], [1, 4], [1, 5], [1, 6]]
    assert shared(rows, tokens, prompts=[7, 8, 7, 7, 8]).pairs == 2
    assert shared(rows, tokens, prompts=[1, 2, 3, 4, 5]).pairs == 2  # those that are left over
    assert shared(rows, tokens, kind="sequence").pairs == 2


def test_only_tokens_inside_the_mask_are_compared() -> None:
    mask = [[0, 1, 1], [1, 1, 0]]
    state = shared([[-1, -2, -4], [-8, -16, -32]], [[9, 1, 2], [1, 3, 3]], mask, prompts=[7, 7])
    assert (state.alike, state.tokens, state.surprise) == (1, 1, 8.0)


@pytest.mark.parametrize("length", [2, 32, 33, 50])
def test_equals_add_nothing(length: int) -> None:
    ids = np.arange(length)
    rows = np.full((2, length), -1.0)
    state = shared(rows, [ids, ids], prompts=[7, 7])
    assert (state.pairs, state.alike, state.surprise) == (1, 0, 0.0)
    other = ids.copy()
    other[-1] = -1
    state = shared(rows, [ids, other], prompts=[7, 7])
    assert (state.alike, state.tokens) == (1, min(length - 1, 32))


def test_what_was_not_logged_surprises_nobody() -> None:
    state = shared([[-1, -2, -4], [nan, -inf, -3]], [[1, 2, 3], [1, 2, 4]], prompts=[7, 7])
    assert (state.tokens, state.surprise) == (2, 0.0)


def test_sequences_of_unequal_length_and_none() -> None:
    columns = pack({"p": [-1.0, -2.0, -3.0]}, lengths=[1, 0, 2], clusters=[7, 7, 7])
    columns = replace(columns, tokens=np.array([4, 4, 5]))
    state = SharedState.of(columns, "p")
    assert (state.pairs, state.alike, state.surprise) == (1, 1, 2.0)
    nothing = SharedState.of(columns.take(np.zeros(0, np.int64)), "p")
    assert (nothing.pairs, nothing.first) == (0, None)
    both = nothing + state + state
    assert (both.pairs, both.surprise, both.first) == (2, 4.0, state.first)


def test_sequences_without_a_token_are_no_pairs() -> None:
    columns = replace(pack({"p": np.zeros((2, 0))}), tokens=np.zeros(0, dtype=np.int64))
    assert SharedState.of(columns, "p").pairs == 0


def test_ends_are_openings_from_the_other_side():
    rows = np.array([[0.0, -1.0, -2.0, 0.0, 0.0], [-1.0, -1.0, 0.0, 0.0, 0.0]])
    inside = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], dtype=bool)
    columns = pack({"p": rows, "q": np.full((2, 5), -1.0)}, mask=inside)
    opening, closing = OpeningState.of(columns, "p")
    assert (opening.opened, opening.tokens, opening.others) == (1, 1, {"q": Logged(1, -1.0)})
    assert (closing.opened, closing.tokens, closing.others) == (1, 2, {"q": Logged(2, -2.0)})
    assert opening.elsewhere == closing.elsewhere == 0
    assert closing.first is not None
    assert closing.first.position == 3
