"""The laws: predicates that prove the right formulas and convict the wrong ones.

A law takes an estimator (log_p, log_q, log_sampler) -> one value per category and sums it exactly
over small worlds, or takes a formula of log r and looks at its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import mpmath
import numpy as np

from kullback.formulas import claim

Array = np.ndarray
Estimator = Callable[[Array, Array, Array], Array]
Formula = Callable[[Any], Any]

LAM = 0.7  # the lam at which the claims of k_lambda are proved
TOLERANCE = 1e-12


class World(NamedTuple):
    """Two policies and a third that may have sampled, over a few outcomes."""

    p: Array
    q: Array
    s: Array


def world(*rows: Iterable[float]) -> World:
    return World(*(np.array(row, dtype=np.float64) for row in rows))


WORLDS = [
    world((0.5, 0.3, 0.2), (0.4, 0.4, 0.2), (0.3, 0.3, 0.4)),
    world((0.001, 0.4995, 0.4995), (0.1, 0.45, 0.45), (0.2, 0.5, 0.3)),  # a hole, r up to 100
    world((0.49, 0.01, 0.01, 0.49), (0.02, 0.02, 0.02, 0.94), (0.25, 0.25, 0.25, 0.25)),
    world((0.997, 0.002, 0.001), (0.9, 0.05, 0.05), (0.99, 0.004, 0.006)),
    world((0.6, 0.4 - 1e-9, 1e-9), (0.3, 0.6, 0.1), (0.4, 0.5, 0.1)),  # k3 reaches 1e8
    world((0.2, 0.3, 0.5), (0.2, 0.3, 0.5), (0.5, 0.3, 0.2)),
]
HOLED = [
    world((0.6, 0.4, 0.0), (0.5, 0.3, 0.2), (0.4, 0.4, 0.2)),  # q outside p
    world((0.6, 0.4, 0.0), (0.7, 0.3, 0.0), (0.5, 0.3, 0.2)),  # a hole both share
    world((0.6, 0.3, 0.1), (0.7, 0.3, 0.0), (0.4, 0.4, 0.2)),  # p outside q: KL(p||q) = inf
    world((0.6, 0.4, 0.0), (0.5, 0.3, 0.2), (0.5, 0.5, 0.0)),  # q outside the sampler
    world((0.6, 0.3, 0.1), (0.5, 0.3, 0.2), (0.5, 0.5, 0.0)),  # p and q outside the sampler
]


def _inside(a: Array, b: Array) -> bool:
    return bool(np.all(b[a > 0] > 0))


CONDITIONS: Mapping[str, Callable[[World], bool]] = {
    claim.Q_FIXED: lambda w: True,
    claim.BOTH_FIXED: lambda w: True,
    claim.TARGET_FIXED: lambda w: True,
    claim.LAM_FIXED: lambda w: True,
    claim.UNSELECTED: lambda w: True,
    claim.Q_INSIDE_P: lambda w: _inside(w.q, w.p),
    claim.P_INSIDE_SAMPLER: lambda w: _inside(w.p, w.s),
    claim.Q_INSIDE_SAMPLER: lambda w: _inside(w.q, w.s),
    claim.TARGET_INSIDE_SAMPLER: lambda w: _inside(w.p, w.s),
}


def _sum(weight: Array, values: Array, over: Array) -> Any:
    """Sum weight * values over the outcomes of positive mass in `over`, with 0 * inf = 0."""
    with np.errstate(invalid="ignore"):
        return np.sum(np.where((over > 0) & (weight != 0), weight * values, 0.0))


def _log_r(w: World) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(w.q) - np.log(w.p)


def _all(w: World) -> Array:
    return np.ones(w.p.shape)


def _f(r: Array) -> Array:
    return (r - 1) ** 2 + 3 * (r - 1)  # not minimal at 1: f'(1) = 3


def _g(r: Array) -> Array:
    return r * (2 * (r - 1) - 2 * np.log(r))  # r * integral of (f'(u) - f'(1)) / u


# What the claims name, in the claims' own words. KL here is its definition and nothing better.
QUANTITIES: Mapping[str, Callable[[World], Any]] = {
    "0": lambda w: 0.0 * np.sum(w.p),
    "KL(p||q)": lambda w: _sum(w.p, -_log_r(w), _all(w)),
    "KL(q||p)": lambda w: _sum(w.q, _log_r(w), _all(w)),
    "lam * KL(q||p)": lambda w: LAM * _sum(w.q, _log_r(w), _all(w)),
    "E_p[(log r)^2] / 2": lambda w: _sum(w.p, _log_r(w) ** 2 / 2, _all(w)),
    "E_q[(log r)^2] / 2": lambda w: _sum(w.q, _log_r(w) ** 2 / 2, _all(w)),
    "D_f(q||p)": lambda w: _sum(w.p, _f(np.exp(_log_r(w))), w.p),
    "D_g(q||p), g(r) = r * integral_1^r (f'(u) - f'(1)) / u du": lambda w: _sum(
        w.p, _g(w.q / w.p), w.p
    ),
    "KL(p||q) + Q(supp p) - 1": lambda w: (
        _sum(w.p, -_log_r(w), _all(w)) + _sum(w.q, _all(w), w.p) - 1
    ),
    "KL(p||q) + lam * (Q(supp p) - 1)": lambda w: (
        _sum(w.p, -_log_r(w), _all(w)) + LAM * (_sum(w.q, _all(w), w.p) - 1)
    ),
    "sum over supp p of q log(q/p), + 1 - Q(supp p)": lambda w: (
        _sum(w.q, _log_r(w), w.p) + 1 - _sum(w.q, _all(w), w.p)
    ),
    "sum over supp p of p f(q/p), + f'(1) (1 - Q(supp p))": lambda w: (
        _sum(w.p, _f(np.exp(_log_r(w))), w.p) + 3 * (1 - _sum(w.q, _all(w), w.p))
    ),
    "P(supp s) - 1": lambda w: _sum(w.p, _all(w), w.s) - 1,
    "sum over supp s of p log(p/q)": lambda w: _sum(w.p, -_log_r(w), w.s),
    "sum over supp s of p (log r)^2 / 2": lambda w: _sum(w.p, _log_r(w) ** 2 / 2, w.s),
    "sum over supp s of p log(p/q), + Q(supp s) - P(supp s)": lambda w: (
        _sum(w.p, -_log_r(w), w.s) + _sum(w.q, _all(w), w.s) - _sum(w.p, _all(w), w.s)
    ),
}


def mean(estimator: Estimator, w: World, sampler: str) -> Any:
    """The exact mean of an estimator over the draws of p or of s."""
    drawn = w.p if sampler == "p" else w.s
    with np.errstate(divide="ignore", invalid="ignore"):
        values = estimator(np.log(w.p), np.log(w.q), np.log(drawn))
    return _sum(drawn, values, drawn)


def agree(a: Any, b: Any) -> bool:
    return bool(np.all(np.isclose(a, b, rtol=TOLERANCE, atol=TOLERANCE)))


def has_mean(quantity: str, sampler: str, estimator: Estimator, worlds: Iterable[World]) -> bool:
    return all(agree(mean(estimator, w, sampler), QUANTITIES[quantity](w)) for w in worlds)


def has_expected_gradient(
    quantity: str, sampler: str, estimator: Estimator, worlds: Iterable[World]
) -> bool:
    """The mean of the sample gradients, in the logits of p, is the gradient of `quantity`.

    Complex steps: no difference is taken, so the derivative of the code itself is exact. The draw
    is not differentiated; log_sampler is the constant that a rollout would have logged.
    """

    def holds(w: World) -> bool:
        drawn = w.p if sampler == "p" else w.s
        sample_gradient = []
        for log_p in _moved(w):
            values = estimator(log_p, np.log(w.q).astype(complex), np.log(drawn))
            sample_gradient.append(np.sum(drawn * values).imag / STEP)
        return agree(sample_gradient, gradient_of(quantity, w))

    return all(holds(w) for w in worlds)


STEP = 1e-30


def _moved(w: World) -> Iterator[Array]:
    """log p, with each of its logits moved by a step that is imaginary."""
    for direction in np.eye(len(w.p)):
        logits = np.log(w.p) + 1j * STEP * direction
        yield logits - np.log(np.sum(np.exp(logits)))


def gradient_of(quantity: str, w: World) -> Array:
    """The exact gradient of a quantity in the logits of p."""
    moved = (World(np.exp(log_p), w.q, w.s) for log_p in _moved(w))
    return np.array([np.imag(QUANTITIES[quantity](one)) / STEP for one in moved])


LOG_R = np.concatenate([sign * np.logspace(-12, np.log10(700), 2000) for sign in (-1.0, 1.0)])


def is_never_negative(formula: Formula, dtype: Any = np.float64, log_r: Array = LOG_R) -> bool:
    return bool(np.all(np.asarray(formula(log_r.astype(dtype))) >= 0))


def ulps(value: Any, exact: Any) -> float:
    """The distance of a float from an exact number, in units of the last place of its type."""
    dtype = np.asarray(value).dtype.type
    nearest = dtype(float(exact))
    if not np.isfinite(value) or not np.isfinite(nearest):
        return 0.0 if value == nearest else np.inf
    return float(abs(mpmath.mpf(float(value)) - exact) / mpmath.mpf(float(np.spacing(nearest))))


def is_within(
    limit: float,
    reference: Callable[[Any], Any],
    formula: Formula,
    dtype: Any = np.float64,
    log_r: Array = LOG_R,
) -> bool:
    """Within `limit` ulp of an mpmath reference at 50 digits."""
    points = log_r.astype(dtype)
    with mpmath.workdps(50), np.errstate(over="ignore"):
        return all(
            ulps(value, reference(mpmath.mpf(float(point)))) <= limit
            for value, point in zip(np.asarray(formula(points)), points, strict=True)
        )
