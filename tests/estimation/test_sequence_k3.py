from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.columns import pack
from kullback.estimation.question_state import QuestionState
from kullback.estimation.sequence_k3 import sequence_k3_error
from kullback.question import Question

ASKED = Question("p", "q", level="sequence_sum")


def shifted(shift: float, sequences: int, length: int) -> dict[str, Any]:
    x = np.random.default_rng(1).normal(shift, 1.0, size=(sequences, length))
    return {"p": -0.5 * (x - shift) ** 2, "q": -0.5 * x**2}


def predicted(shift: float, sequences: int, length: int) -> float:
    columns = pack(shifted(shift, sequences, length))
    return sequence_k3_error(QuestionState.of(columns, ASKED))


@pytest.mark.parametrize(("shift", "length"), [(0.1, 1000), (0.2, 100), (0.05, 400)])
def test_of_independent_normal_tokens_it_is_exact(shift: float, length: int) -> None:
    """Var k3 of a sequence is e^x − 1 − x with x = shift² · length, and its KL x/2."""
    x = shift**2 * length
    exact = math.sqrt(math.expm1(x) - x) / (x / 2)
    assert predicted(shift, 2000, length) * math.sqrt(2000) == pytest.approx(exact, rel=0.05)


def test_the_prediction_is_what_is_measured() -> None:
    """Where x is small enough for k3 of sums to be measured: 20,000 sequences."""
    logs = shifted(0.1, 20_000, 20)
    log_r = (logs["q"] - logs["p"]).sum(axis=1)
    k3 = np.expm1(log_r) - log_r
    assert predicted(0.1, 20_000, 20) == pytest.approx(k3.std() / math.sqrt(20_000) / 0.1, rel=0.05)


def test_it_is_refused_and_says_how_far_off_it_would_be() -> None:
    logs = shifted(0.1, 64, 1000)
    found = kb.estimate(log_p=logs["p"], log_q=logs["q"], level="sequence_sum", method="k3_of_sums")
    assert np.isnan(found.mean)
    assert found.reason is not None
    assert "off by about 3.6 times the KL (64 sequences of 1000 tokens)" in found.reason
    token = kb.estimate(log_p=logs["p"], log_q=logs["q"], level="sequence_sum", method="k3")
    assert token.standard_error < 0.01 * token.mean


def test_elsewhere_it_is_refused_with_another_reason() -> None:
    logs: dict[str, Any] = {f"log_{role}": one for role, one in shifted(0.1, 8, 10).items()}
    assert "ask per sequence" in str(kb.estimate(**logs, method="k3_of_sums"))
    third = kb.estimate(
        **logs, log_sampler=logs["log_p"] - 0.01, level="sequence_sum", method="k3_of_sums"
    )
    assert "third policy" in str(third)


def test_beyond_all_floats_it_is_infinite() -> None:
    assert predicted(1.0, 16, 2000) == math.inf
    assert math.isnan(
        sequence_k3_error(QuestionState.of(pack({"p": [[0.0]], "q": [[0.0]]}), ASKED))
    )
