"""What the auditor says of formulas and calls that cases found in the wild."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kullback as kb

from .entries import Input


def naive_k3(log_prob: Any, ref_log_prob: Any) -> Any:
    """Case 05, and with its roles exchanged case 37."""
    log_r = ref_log_prob - log_prob
    return np.exp(log_r) - 1 - log_r


def inverted_k3(log_prob: Any, ref_log_prob: Any) -> Any:
    return naive_k3(ref_log_prob, log_prob)


def exp_of_ratio(log_prob: Any, old_log_prob: Any) -> Any:
    """Case 38: (exp(ratio) - 1) - ratio, of a ratio that is one already."""
    ratio = np.exp(log_prob - old_log_prob)
    return (np.exp(ratio) - 1) - ratio


def pointwise(logits: Any, target_logits: Any) -> Any:
    """Case 24: sum target * (log target - input), as kl_div has it."""
    log_input, log_target = (
        one - np.log(np.exp(one).sum(axis=-1, keepdims=True)) for one in (logits, target_logits)
    )
    return (np.exp(log_target) * (log_target - log_input)).sum(axis=-1)


def student_first(logits: Any, ref_logits: Any) -> Any:
    return pointwise(logits, ref_logits)


def teacher_first(logits: Any, ref_logits: Any) -> Any:
    return pointwise(ref_logits, logits)


def said(function: Callable[..., Any]) -> str:
    """Verdict and warnings of a function of NumPy arrays."""
    found = kb.audit.probe(function, library="numpy")
    return " ".join([found.verdict, *found.warnings])


def direction(function: Callable[..., Any]) -> str:
    """Which divergence a call is, the student being the policy that learns."""
    form = kb.audit.probe(function, library="numpy").value.form
    assert form
    names = {"current": "student", "reference": "teacher"}
    return f"{form.method}({names[form.p]}||{names[form.q]})"


def at_identity(_: Input) -> float:
    return kb.audit.probe(exp_of_ratio, library="numpy").value.at_identity
