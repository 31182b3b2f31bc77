"""What is left of a batch when rows are taken out."""

from __future__ import annotations

import numpy as np

from kullback.dumps.batch import Batch, Fault, Use
from kullback.dumps.layout import Held
from kullback.dumps.ragged import Ragged


def test_rows_are_left_out_by_index_and_named_by_row():
    lists = Ragged.of([np.array([1.0]), np.array([2.0, 3.0])])
    batch = Batch((), [lists, ["a", "b"]], np.array([10, 11])).without({0: "bad"})
    assert batch.faults == [Fault(10, "bad")]
    assert batch.rows.tolist() == [11]
    assert batch.values[0].values.tolist() == [2, 3]
    assert batch.values[1] == ["b"]


def test_places_go_with_their_rows():
    rows, within, numbers = np.array([4, 4, 5]), np.array([0, 1, 0]), np.array([8, 9, 10])
    lists = Ragged.of([np.array([float(i)]) for i in range(3)])
    batch = Batch((), [lists, ["a", "b", "c"]], rows, within=within, numbers=numbers)
    left = batch.without({1: "bad"})
    assert left.faults == [Fault(4, "bad", 1)]
    assert left.numbers is not None
    assert left.numbers.tolist() == [8, 10]
    whole = Batch.end_to_end([batch.part(0, 1, []), batch.part(1, 3, [])])
    assert whole.within is not None
    assert (whole.rows.tolist(), whole.within.tolist()) == ([4, 4, 5], [0, 1, 0])
    assert whole.values[0].values.tolist() == [0, 1, 2]


def test_a_use_says_how_its_column_is_handed_over():
    lists, number, text = Held(1, "number"), Held(0, "number"), Held(1, "text")
    kept = [
        Use("log_probs.a", "a", lists),
        Use("step", "step", number),
        Use("log_probs.a", "a", lists, "batch"),
        Use("lengths", "lengths", lists, "batch"),
        Use("text", "text", text, "batch"),
        Use("log_probs.a", "a", number, "token"),
        Use("step", "step", number, "token"),
    ]
    assert [use.kept for use in kept] == [
        *("lists", "values", "lists", "lists", "values", "flat", "runs")
    ]
