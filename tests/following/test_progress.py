from __future__ import annotations

from dataclasses import replace

import kullback as kb
from kullback.dumps import Damaged
from kullback.dumps.pieces import Mark, Piece
from kullback.following.progress import NAMED, Counted, Counts, Progress, Tail
from kullback.following.stamps import Stamp


def batch(log_q: float) -> kb.Columns:
    return kb.pack({"a": [[-1.0, -2.0]], "b": [[log_q, log_q]]}, clusters=["x"])


def a_file(log_q: float) -> Counted:
    tail = Tail(kb.summarize([batch(log_q)]), Counts(1), Mark(90, 3))
    return Counted(Stamp(100, 1, 1), 1, 1, "JSON lines", "f", {}, Counts(2), Mark(50, 2), "", tail)


def k1(summary: kb.Summary | None) -> float:
    assert summary is not None
    [state] = summary.questions.values()
    return state.total("k1")


def test_counts_add_and_name_the_first_damaged_rows():
    rows = tuple(Damaged("a", i, f"line {i}", "x") for i in range(15))
    one = Counts.of(Piece(Mark(), batch(-1.0), rows, {"late": "x"}))
    assert (one.rows, one.damaged_rows, len(one.damaged)) == (16, 15, 15)
    both = one + Counts(3, 1, rows[:1], {"more": "y"}) + one
    assert (both.rows, both.damaged_rows, len(both.damaged)) == (35, 31, NAMED)
    assert both.unused == {"late": "x", "more": "y"}
    assert both.damaged[15] == rows[0]
    assert Counts.of(Piece(Mark(), None, (), {})) == Counts()


def test_the_summary_is_of_what_is_closed_and_of_the_tails():
    one = Progress("1", "")
    assert one.summary is None
    one = replace(one, files={"x": a_file(-3.0), "y": a_file(-2.5)})
    assert k1(one.summary) == 3.0 + 2.0
    assert one.rows == 6
    whole = replace(one, closed=kb.summarize([batch(-2.0)]))
    assert k1(whole.summary) == 1.0 + 3.0 + 2.0


def test_a_closed_tail_counts_as_before_and_reading_goes_on_behind_it():
    one = replace(Progress("1", ""), files={"x": a_file(-3.0), "y": a_file(-2.5)})
    closed = one.tails_closed(["x"])
    assert k1(closed.closed) == 3.0
    assert k1(closed.summary) == k1(one.summary)
    assert closed.rows == one.rows
    x = closed.files["x"]
    assert (x.begin, x.tail, x.counts, x.end) == (Mark(90, 3), None, Counts(3), 90)
    assert x.closed() is x
    assert closed.files["y"] is one.files["y"]


def test_where_a_file_was_read_to():
    one = a_file(-3.0)
    assert one.end == 90
    assert replace(one, begin=None, tail=None).end == 100


def test_anew_keeps_what_was_asked_and_nothing_else():
    one = Progress("1", "p", ("KL(a||b)",), ("step",), {"a": "b"}, 7, files={"x": a_file(-1.0)})
    assert one.anew() == Progress("1", "p", ("KL(a||b)",), ("step",), {"a": "b"}, 7)
