"""The log-ratios of a question without any weight, once for all who look at their size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, is_number
from kullback.question import Question


class Ratios(NamedTuple):
    """log q − log p of each token, 0 where one of them is not a number; and where both are."""

    log_r: NDArray[np.float64]
    there: NDArray[np.bool_]


def log_ratios(columns: Columns, questions: list[Question]) -> dict[Question, Ratios]:
    """The log-ratios of each question, masked tokens included."""
    finite = {role: is_number(values) for role, values in columns.log_probs.items()}
    found = {}
    for question in questions:
        there = finite[question.p] & finite[question.q]
        p, q = columns.log_probs[question.p], columns.log_probs[question.q]
        with np.errstate(invalid="ignore", over="ignore"):
            log_r = np.where(there, q.astype(np.float64) - p, 0.0)
        found[question] = Ratios(log_r, there)
    return found
