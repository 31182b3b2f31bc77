from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.columns import pack
from kullback.estimation.conditions import ess_fraction
from kullback.estimation.question_state import QuestionState
from kullback.formulas.claim import BOTH_FIXED, P_INSIDE_SAMPLER, Q_FIXED, UNSELECTED
from kullback.question import Question


def marks(lengths: list[int] | int = 4, **changes) -> set[str]:
    x = np.random.default_rng(1).normal(0.1, 0.2, size=480)
    return set(kb.estimate(log_p=0 * x, log_q=x, lengths=lengths, **changes).marks)


def test_marks_say_what_is_wrong() -> None:
    uneven = [3, 5] * 60
    assert marks() == marks(level="sequence_mean") == marks(uneven) == set()
    assert marks(uneven, level="sequence_mean") == {"selected-on-outcome"}
    assert marks(uneven, level="sequence_mean", exact=np.ones(480), method="exact") == set()
    assert marks(in_sample=True) == {"in-sample"}
    assert marks(in_sample=True, exact=np.ones(480), method="exact") == set()
    assert marks(method="k2") == {"biased"}
    assert marks(10) == {"few-clusters"}  # 48 sequences
    assert marks(clusters=np.arange(120) % 60) == set()
    assert marks(clusters=np.arange(120) % 40) == {"few-clusters"}
    assert marks(log_sampler=np.zeros(480)) == set()
    spread = np.random.default_rng(2).normal(-4, 4, size=480)
    assert marks(log_sampler=spread) == {"weights-degenerate"}


@pytest.mark.parametrize(("method", "biased"), [("auto", False), ("k2", True), ("k3", False)])
def test_it_assumes_what_its_formula_claims(method: str, biased: bool) -> None:
    x = np.tile([0.0, -0.2], (40, 4))
    on = kb.estimate(log_p=0 * x, log_q=x, method=method)
    off = kb.estimate(log_p=0 * x, log_q=x, log_sampler=0 * x, method=method)
    assert Q_FIXED in on.assumptions
    assert {BOTH_FIXED, P_INSIDE_SAMPLER} <= {*off.assumptions}
    for found in (on, off):
        assert UNSELECTED in found.assumptions
        assert any("p and q are close" in one for one in found.assumptions) == biased
        assert ("biased" in found.marks) == biased


def test_one_overflowing_weight_is_all_there_is() -> None:
    log_s = np.full((60, 1), -1.0)
    log_s[0] = -400.0
    columns = pack({"p": np.full((60, 1), -1.0), "q": np.full((60, 1), -1.0), "s": log_s})
    assert ess_fraction(QuestionState.of(columns, Question("p", "q", "s"))) == 0.0
