"""What a divergence over the whole vocabulary gives, beside what it is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import kullback as kb

STUDENT = torch.tensor([0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, 1.5], dtype=torch.float64)
TEACHER = torch.tensor([1.0, 0.0, 1.0, 0.5, -1.0, -0.5, 0.0, 2.5], dtype=torch.float64)
BETAS = (0.0, 0.01, 0.5, 0.99, 1.0)


@dataclass(frozen=True)
class Measure:
    """Numbers of a framework's code, each beside the exact one."""

    name: str
    measured: Callable[[], dict[str, Any]]
    where: str
    words: str


def along_beta(divergence: Callable[[Any, Any, float], Any]) -> dict[str, Any]:
    """A generalized JSD of two rows of logits, and what its definition gives."""
    student, teacher = STUDENT.softmax(-1), TEACHER.softmax(-1)
    rows = []
    for beta in BETAS:
        mixture = (1 - beta) * student + beta * teacher
        jsd = beta * kb.divergence(teacher, mixture) + (1 - beta) * kb.divergence(student, mixture)
        found = divergence(STUDENT.clone(), TEACHER.clone(), beta)
        rows.append({"beta": beta, "measured": float(found), "generalized_jsd": float(jsd)})
    return {
        "KL(teacher||student)": float(kb.divergence(teacher, student)),
        "KL(student||teacher)": float(kb.divergence(student, teacher)),
        "rows": rows,
    }


ENDS = (
    "The generalized JSD goes to 0 as beta goes to 0 or 1; at 0 and at 1 itself the code gives a "
    "whole KL."
)
