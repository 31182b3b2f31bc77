"""A damaged row says where it is."""

from __future__ import annotations

from kullback.dumps.errors import Damaged, DumpError


def test_a_damaged_row_prints_its_place_and_reason():
    assert str(Damaged("a.parquet", 3, "row 3", "mask is null")) == "a.parquet, row 3: mask is null"


def test_callers_can_catch_a_value_error():
    assert issubclass(DumpError, ValueError)


def test_a_sentence_stays_one_printable_line():
    said = str(DumpError("a\nb.jsonl has no column '\x1b[2J\ud83d', Größe"))
    assert said == r"a\nb.jsonl has no column '\x1b[2J\ud83d', Größe"
    assert str(DumpError("größer als 5 µm")) == "größer als 5 µm"
