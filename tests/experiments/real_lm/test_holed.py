from __future__ import annotations

import itertools

import pytest

from kullback.experiments.real_lm.holed import plain, table_of_p, table_of_q
from kullback.experiments.real_lm.measure import holes


@pytest.mark.parametrize("made", [table_of_p(), table_of_q()])
def test_ten_holes_on_one_line_each(made):
    assert [row[1] for row in made.rows] == ["strong"] * 5 + ["noise"] * 3 + ["light"] * 2
    cells = [text for row in made.cells() for text in row]
    assert not any("\n" in text or "|" in text for text in cells)
    assert all(len(row) == len(made.heads) for row in made.rows)


def test_a_space_at_the_end_is_seen_and_a_line_break_too():
    assert plain("a \n|") == "“a ⏎¦”"


def test_they_are_holes_and_each_pair_begins_with_its_worst():
    in_p, in_q = holes()["in p"], holes()["in q"]
    for rows, score in ((in_p, "chi2"), (in_q, "adds")):
        for before, after in itertools.pairwise(rows):
            assert before["pair"] != after["pair"] or before[score] >= after[score]
    assert all(row["q"] < row["p"] for row in in_q)
    # The χ² of a prefix is at least that of two bins: p's head, and what is beyond it.
    for row in in_p:
        p, q = row["p_beyond"], row["q_beyond"]
        assert row["chi2"] >= (q - p) ** 2 / (p * (1 - p)) * (1 - 1e-3)
