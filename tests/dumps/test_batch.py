"""What is left of a batch when rows are taken out."""

from __future__ import annotations

import numpy as np

from kullback.dumps.batch import Batch, Fault
from kullback.dumps.ragged import Ragged


def test_rows_are_left_out_by_index_and_named_by_row():
    lists = Ragged.of([np.array([1.0]), np.array([2.0, 3.0])])
    batch = Batch((), [lists, ["a", "b"]], np.array([10, 11])).without({0: "bad"})
    assert batch.faults == [Fault(10, "bad")]
    assert batch.rows.tolist() == [11]
    assert batch.values[0].values.tolist() == [2, 3]
    assert batch.values[1] == ["b"]
