from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns, TopK, pack
from kullback.estimation import drawn as module
from kullback.estimation.drawn import drawn

NAN = float("nan")


def columns_of(ids, log_probs, tokens, mask=None) -> Columns:
    packed = pack({"p": [[-1.0] * len(tokens)]}, mask=None if mask is None else [mask])
    head = TopK(np.array(ids), np.array(log_probs))
    return replace(packed, top_k={"p": head}, tokens=np.array(tokens))


def test_where_each_token_stands_in_its_head():
    ids = [[7, 5, 6], [7, 5, -1], [-1, -1, -1], [7, 5, 6]]
    logs = [[-1.0, -2.0, -3.0], [-0.5, -1.5, NAN], [NAN] * 3, [-1.0, -2.0, -3.0]]
    (piece,) = drawn(columns_of(ids, logs, [6, 6, 7, 7], [1, 1, 1, 0]), "p")
    assert piece.place.tolist() == [2, 3, 3, 0]
    assert piece.listed.tolist() == [3, 2, 0, 3]
    assert piece.told.tolist() == [True, True, False, False]
    assert piece.logs[1].tolist() == [-0.5, -1.5, -np.inf]


def test_lists_that_are_not_largest_first_are_put_in_order_and_left_as_they_were():
    columns = columns_of([[7, 5]], [[-2.0, -1.0]], [7])
    (piece,) = drawn(columns, "p")
    assert (piece.ids.tolist(), piece.place.tolist()) == ([[5, 7]], [1])
    assert columns.top_k["p"].ids.tolist() == [[7, 5]]


def test_pieces_are_all_of_it_and_small(monkeypatch):
    monkeypatch.setattr(module, "ENTRIES", 4)
    pieces = list(drawn(columns_of([[7, 5]] * 5, [[-1.0, -2.0]] * 5, [7, 5, 6, 7, 5]), "p"))
    assert [piece.start for piece in pieces] == [0, 2, 4]
    assert np.concatenate([piece.place for piece in pieces]).tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("missing", ["tokens", "top_k"])
def test_nothing_is_told_without_ids_or_heads(missing):
    columns = columns_of([[7, 5]], [[-1.0, -2.0]], [7])
    assert not list(drawn(replace(columns, **{missing: {} if missing == "top_k" else None}), "p"))
