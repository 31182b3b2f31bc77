from __future__ import annotations

import pytest

from kullback.diagnosis.reading_faults import diagnose_reading

LOST = {"file": "a.jsonl", "row": 2, "place": "line 3", "reason": "no JSON object"}


def codes(**source):
    return {one.code: one for one in diagnose_reading(source, ["KL(a||b)"]).findings}


@pytest.mark.parametrize(
    ("lost", "severity", "spoiled"), [(1, "note", ()), (2, "warning", ("KL(a||b)",))]
)
def test_more_than_one_row_of_a_hundred_lost_spoils_every_answer(lost, severity, spoiled):
    found = codes(rows=100, damaged_rows=lost, damaged=[LOST])["rows-left-out"]
    assert (found.severity, found.questions) == (severity, spoiled)
    assert found.claim == (
        f"{lost} of 100 rows are damaged and were left out. The first: no JSON object."
    )
    assert found.where == ("a.jsonl, line 3",)


@pytest.mark.parametrize("name", ["log_probs.reference", "per_token_logps", "ref_lp", "LogProb"])
def test_log_probs_that_were_not_read_are_named(name):
    found = codes(unused={"reward": "no part of a dump", name: "holds text"})["column-not-read"]
    assert found.claim == f"Column {name} looks like log-probs and was not read: holds text."
    assert found.advice == f"Say what it is: --map ROLE={name}."


def test_other_columns_may_stay_unread():
    assert not codes(rows=3, damaged_rows=0, unused={"reward": "x", "help_text": "x"})


def test_a_mask_that_was_not_read_spoils_every_answer():
    found = codes(unused={"ref_lp": "text", "completion_masks": "no known name"})["column-not-read"]
    assert found.questions == ("KL(a||b)",)
    assert (
        found.claim == "Column completion_masks looks like a mask and was not read: no known name."
    )
    assert found.advice == "Say what it is: --map mask=completion_masks."
