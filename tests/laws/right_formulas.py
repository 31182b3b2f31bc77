"""Every claimed formula as an estimator of three log-probabilities, under its name in CLAIMS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kullback.formulas import k_family, weights

from .laws import LAM, Estimator, Formula


def quadratic(log_q_over_p: Any) -> Any:
    return k_family.f_form(log_q_over_p, lambda r: (r - 1) ** 2 + 3 * (r - 1), slope_at_one=3.0)


def k_lambda(log_q_over_p: Any) -> Any:
    return k_family.k_lambda(log_q_over_p, LAM)


POINTWISE: Mapping[str, Formula] = {
    "k1": k_family.k1,
    "k2": k_family.k2,
    "k3": k_family.k3,
    "k_lambda": k_lambda,
    "other_direction": k_family.other_direction,
    "f_form": quadratic,
}


def on_policy(formula: Formula) -> Estimator:
    return lambda log_p, log_q, log_sampler: formula(log_q - log_p)


WEIGHTED: Mapping[str, Estimator] = {
    "control": lambda p, q, s: weights.control(log_target=p, log_sampler=s),
    "weighted_k1": lambda p, q, s: weights.weighted_k1(log_p=p, log_q=q, log_sampler=s),
    "weighted_k2": lambda p, q, s: weights.weighted_k2(log_p=p, log_q=q, log_sampler=s),
    "weighted_k3": lambda p, q, s: weights.weighted_k3(log_p=p, log_q=q, log_sampler=s),
}
CLAIMS = {**k_family.CLAIMS, **weights.CLAIMS}
ESTIMATORS = {**{name: on_policy(formula) for name, formula in POINTWISE.items()}, **WEIGHTED}
