from __future__ import annotations

from math import nan

import numpy as np

from kullback.columns import pack
from kullback.estimation.certain_state import CertainState
from kullback.estimation.role_sums import Logged


def of(rows, others, mask=None) -> CertainState:
    return CertainState.of(pack({"p": rows, "q": others}, mask=mask), "p")


def test_zeros_are_counted_with_what_the_others_give_there_and_where_it_is_nearly_certain():
    state = of([[0.0, -0.005, -20.0, 0.0], [-1.0, 0.0, -2.0, -3.0]],
               [[-2.0, -0.5, -1.0, nan], [-1.0, -3.0, 0.0, -1.0]])  # fmt: skip
    assert (state.zeros, state.near, state.far) == (3, 1, 1)
    assert state.at_zeros == {"q": Logged(2, -5.0)}
    assert state.at_near == {"q": Logged(1, -0.5)}
    assert str(state.first) == "row 0, token 0"


def test_a_sequence_of_zeros_alone_and_what_is_masked_do_not_count():
    assert of([[0.0, 0.0], [-1.0, -1.0]], [[-1.0, -1.0]] * 2).zeros == 0
    state = of([[0.0, -1.0, 0.0]], [[-1.0, -1.0, -4.0]], mask=[[0, 1, 1]])
    assert (state.zeros, state.at_zeros) == (1, {"q": Logged(1, -4.0)})


def test_adding_counts_both():
    rows, others = np.array([[0.0, -1.0], [-1.0, -16.0]]), np.full((2, 2), -2.0)
    both = of(rows[:1], others[:1]) + of(rows[1:], others[1:])
    assert both == of(rows, others)
    assert of(rows[1:], others[1:]) + of(rows[:1], others[:1]) == both
