from __future__ import annotations

from dataclasses import replace

import numpy as np

from kullback.columns import Columns, Place, pack
from kullback.estimation.mask_state import Ending, MaskState
from kullback.estimation.role_sums import Logged


def batch(tokens: list[list[int]], mask: list[list[int]]) -> Columns:
    shape = np.shape(tokens)
    values = -1.0 - np.arange(np.prod(shape)).reshape(shape)
    columns = pack({"old": values, "new": 2 * values}, mask=mask)
    return replace(columns, tokens=np.ravel(tokens))


COLUMNS = batch(
    [[5, 6, 2, 0], [5, 2, 6, 2], [5, 6, 7, 8], [5, 6, 2, 0], [5, 5, 5, 5]],
    [[1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]],
)
STATE = MaskState.of(COLUMNS)


def test_rows_and_stretches_that_are_left_out_are_counted() -> None:
    assert (STATE.total, STATE.empty) == (Ending(4, 0, 4, 1, 4, 2), 1)
    assert (STATE.holed, STATE.holes) == (1, 1)


def test_sequences_are_filed_by_their_last_counted_id() -> None:
    assert STATE.endings == {
        2: Ending(2, 0, 3, 2, 4, 1),
        6: Ending(1, 0, 2, 1, 2, 1),
        8: Ending(1, 0, 4, 1, 4, 1),
    }


def test_an_id_that_stands_before_as_well_is_told() -> None:
    inside = MaskState.of(batch([[2, 5, 2]], [[1, 1, 1]]))
    assert inside.endings[2].inside == 1


def test_what_stands_behind_is_kept_with_its_log_probs() -> None:
    assert {name: one.sequences for name, one in STATE.behind.items()} == {0: 1, 2: 1}
    assert STATE.left == {"old": Logged(2, -4.0 - 15.0), "new": Logged(2, -8.0 - 30.0)}
    assert STATE.first == Place("", 0, 3)


def test_padding_with_the_end_itself_is_not_behind() -> None:
    assert MaskState.of(batch([[5, 2, 2, 2]], [[1, 1, 0, 0]])).behind == {}


def test_without_ids_there_are_no_endings() -> None:
    state = MaskState.of(replace(COLUMNS, tokens=None))
    assert (state.endings, state.behind, state.first) == ({}, {}, None)
    assert (state.sequences, state.empty, state.holes) == (4, 1, 1)


def test_states_add() -> None:
    parts = [MaskState.of(COLUMNS.take(slice(i, i + 1))) for i in range(5)]
    assert parts[0] + (parts[1] + (parts[2] + (parts[3] + parts[4]))) == STATE
    assert MaskState.of(COLUMNS.take(slice(0, 0))) + STATE == STATE
