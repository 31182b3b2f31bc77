from __future__ import annotations

import numpy as np

from kullback.columns import pack
from kullback.estimation.question_state import QuestionState
from kullback.estimation.related_rows import SHORTEST, RelatedRows
from kullback.question import Question

ASKED = Question("p", "q")


def of(p, q) -> RelatedRows:
    return QuestionState.of(pack({"p": p, "q": q}), ASKED).related


def rows(count: int = 6, width: int = 40) -> np.ndarray:
    return -np.random.default_rng(0).gamma(1.0, 1.0, size=(count, width))


def test_sequences_of_the_same_tokens_go_together_and_others_do_not() -> None:
    p = rows()
    q = p - 0.01
    q[[2, 5]] = p[[5, 2]]
    found = of(p, q)
    assert (found.told, found.near, found.apart) == (6, 4, 2)
    assert str(found.first) == "row 2, token 0"


def test_what_is_short_or_hardly_varies_tells_nothing() -> None:
    assert of(rows(width=SHORTEST - 1), rows(width=SHORTEST - 1)).told == 0
    assert of(rows(), np.full((6, 40), -1.0)) == RelatedRows(0, 0, 0, None, 0)


def test_adding_counts_both() -> None:
    p = rows()
    q = np.roll(p, 1, axis=0)
    assert of(p, p) + of(p, q) == RelatedRows(12, 6, 6, of(p, q).first, 0)


def test_a_sequence_of_zeros_beside_doubt_is_blank() -> None:
    p = rows()
    q = p - 0.01
    q[[1, 4]] = 0.0
    assert (of(p, q).blank, of(p, q).near) == (2, 4)
    assert of(np.full((6, 40), -1.0), np.zeros((6, 40))).blank == 0
