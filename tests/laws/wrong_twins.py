"""Formulas that are wrong in the ways they are wrong in practice, each with the laws it breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import mpmath
import numpy as np

from kullback.formulas import categorical, gaussian
from kullback.formulas.k_family import k1, k2, k3, other_direction

from .laws import (
    HOLED,
    QUANTITIES,
    WORLDS,
    Array,
    agree,
    has_expected_gradient,
    has_mean,
    is_never_negative,
    is_within,
)
from .right_formulas import WEIGHTED, k_lambda, on_policy


def exact_k3(log_r: Any) -> Any:
    return mpmath.expm1(log_r) - log_r


def _pointwise(law: Callable[..., bool], quantity: str) -> Callable[[Any], bool]:
    return lambda formula: law(quantity, "p", on_policy(formula), WORLDS)


def _sums_over_categories(formula: Callable[[Array, Array], Any]) -> bool:
    return all(agree(formula(w.p, w.q), QUANTITIES["KL(p||q)"](w)) for w in WORLDS + HOLED)


def _is_gaussian_kl(formula: Callable[[float, float, float, float], Any]) -> bool:
    """KL(N(0, 1) || N(1, 2^2)) = log 2 + 2 / 8 - 1 / 2, in deviations."""
    return agree(formula(0.0, 1.0, 1.0, 2.0), np.log(2) - 0.25)


LAWS: Mapping[str, Callable[[Any], bool]] = {
    "mean is KL(p||q)": _pointwise(has_mean, "KL(p||q)"),
    "mean is KL(q||p)": _pointwise(has_mean, "KL(q||p)"),
    "mean is half the second moment": _pointwise(has_mean, "E_p[(log r)^2] / 2"),
    "gradient is of KL(p||q)": _pointwise(has_expected_gradient, "KL(p||q)"),
    "gradient is of KL(q||p)": _pointwise(has_expected_gradient, "KL(q||p)"),
    "gradient is of lam KL(q||p)": _pointwise(has_expected_gradient, "lam * KL(q||p)"),
    "gradient vanishes": _pointwise(has_expected_gradient, "0"),
    "never negative": is_never_negative,
    "never negative in float32": partial(is_never_negative, dtype=np.float32),
    "k3 within 4 ulp": partial(is_within, 4, exact_k3),
    "k3 within 3 ulp in float32": partial(is_within, 3, exact_k3, dtype=np.float32),
    "mean under s is KL(p||q)": lambda estimator: has_mean(
        "KL(p||q)", "s", estimator, WORLDS + HOLED[:2]
    ),
    "gradient under s is of KL(p||q)": lambda estimator: has_expected_gradient(
        "KL(p||q)", "s", estimator, WORLDS
    ),
    "sum is KL(p||q)": _sums_over_categories,
    "Gaussian KL": _is_gaussian_kl,
}


class WrongTwin(NamedTuple):
    """A wrong formula, the right one, and the names of the laws that tell them apart."""

    wrong: Callable[..., Any]
    right: Callable[..., Any]
    breaks: tuple[str, ...]


def naive_k3(log_r: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.exp(log_r) - 1 - log_r


def _weighted(weight: Callable[..., Any]) -> Callable[..., Any]:
    def estimator(log_p: Any, log_q: Any, log_sampler: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(np.exp(weight(log_p, log_q, log_sampler)) * k3(log_q - log_p))

    return estimator


def _exact(p: Array, q: Array) -> Any:
    with np.errstate(divide="ignore"):
        return categorical.exact(log_probs_p=np.log(p), log_probs_q=np.log(q))


def _mean_over_categories(p: Array, q: Array) -> Any:
    return _exact(p, q) / len(p)


def _unguarded(p: Array, q: Array) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sum(p * (np.log(p) - np.log(q)))


def _smoothed(p: Array, q: Array) -> Any:
    return np.sum(p * (np.log(p + 1e-8) - np.log(q + 1e-8)))


def _gaussian(mean_p: float, std_p: float, mean_q: float, std_q: float) -> Any:
    return gaussian.kl(mean_p=mean_p, std_p=std_p, mean_q=mean_q, std_q=std_q)


WRONG_TWINS: Mapping[str, WrongTwin] = {
    "k1 with its sign flipped": WrongTwin(lambda x: -k1(x), k1, ("mean is KL(p||q)",)),
    "k1 without its sign": WrongTwin(
        lambda x: np.where(x > 0, x, -x), k1, ("mean is KL(p||q)", "gradient vanishes")
    ),
    "k2 without its half": WrongTwin(
        lambda x: 2 * k2(x), k2, ("mean is half the second moment", "gradient is of KL(p||q)")
    ),
    "k3 of the inverted ratio": WrongTwin(
        lambda x: k3(-x), k3, ("mean is KL(p||q)", "gradient is of KL(q||p)")
    ),
    "k3 clamped at 10": WrongTwin(
        lambda x: np.minimum(k3(x), 10),
        k3,
        ("mean is KL(p||q)", "gradient is of KL(q||p)", "k3 within 4 ulp"),
    ),
    "k3 of a clamped log-ratio": WrongTwin(
        lambda x: k3(np.minimum(x, 3)), k3, ("mean is KL(p||q)", "gradient is of KL(q||p)")
    ),
    "k3 as exp(x) - 1 - x": WrongTwin(
        naive_k3,
        k3,
        ("never negative in float32", "k3 within 3 ulp in float32", "k3 within 4 ulp"),
    ),
    "k3 as expm1(x) - x": WrongTwin(
        lambda x: np.expm1(np.minimum(x, 709)) - x,
        k3,
        ("k3 within 3 ulp in float32", "k3 within 4 ulp"),
    ),
    "k3 rounded through float16": WrongTwin(
        lambda x: k3(x.real.astype(np.float16)), k3, ("mean is KL(p||q)",)
    ),
    "k_lambda with its control turned": WrongTwin(
        lambda x: 2 * k1(x) - k_lambda(x), k_lambda, ("gradient is of lam KL(q||p)",)
    ),
    "other direction without its control": WrongTwin(
        lambda x: np.exp(x) * x, other_direction, ("never negative",)
    ),
    "other direction as k3 of the inverted ratio": WrongTwin(
        lambda x: k3(-x), other_direction, ("mean is KL(q||p)",)
    ),
    "weighted k3 with the weight inverted": WrongTwin(
        _weighted(lambda p, q, s: s - p), WEIGHTED["weighted_k3"], ("mean under s is KL(p||q)",)
    ),
    "weighted k3 without the weight": WrongTwin(
        _weighted(lambda p, q, s: 0.0),
        WEIGHTED["weighted_k3"],
        ("mean under s is KL(p||q)", "gradient under s is of KL(p||q)"),
    ),
    "weighted k3 that loses q where p is 0": WrongTwin(
        _weighted(lambda p, q, s: p - s), WEIGHTED["weighted_k3"], ("mean under s is KL(p||q)",)
    ),
    "weighted k3 with the weight held constant": WrongTwin(
        _weighted(lambda p, q, s: (p - s).real),
        WEIGHTED["weighted_k3"],
        ("gradient under s is of KL(p||q)",),
    ),
    "sum with its sides exchanged": WrongTwin(
        lambda p, q: _exact(q, p), _exact, ("sum is KL(p||q)",)
    ),
    "mean instead of sum over categories": WrongTwin(
        _mean_over_categories, _exact, ("sum is KL(p||q)",)
    ),
    "sum with 0 log 0 = NaN": WrongTwin(_unguarded, _exact, ("sum is KL(p||q)",)),
    "sum of smoothed probabilities": WrongTwin(_smoothed, _exact, ("sum is KL(p||q)",)),
    "sum in bits": WrongTwin(lambda p, q: _exact(p, q) / np.log(2), _exact, ("sum is KL(p||q)",)),
    "Gaussian KL of variances": WrongTwin(
        lambda m, s, n, t: _gaussian(m, s**2, n, t**2), _gaussian, ("Gaussian KL",)
    ),
    "Gaussian KL of logarithms of deviations": WrongTwin(
        lambda m, s, n, t: _gaussian(m, np.exp(s), n, np.exp(t)), _gaussian, ("Gaussian KL",)
    ),
}
