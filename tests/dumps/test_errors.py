"""A damaged row says where it is."""

from __future__ import annotations

from kullback.dumps.errors import Damaged, DumpError


def test_a_damaged_row_prints_its_place_and_reason():
    assert str(Damaged("a.parquet", 3, "row 3", "mask is null")) == "a.parquet, row 3: mask is null"


def test_callers_can_catch_a_value_error():
    assert issubclass(DumpError, ValueError)
