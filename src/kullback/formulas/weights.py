"""A third policy sampled: the k family under importance weights, and two controls of mean zero.

x ~ s, weight w = p(x)/s(x). Tokens are weighted one by one, so what is estimated is KL(p||q) at
the prefixes that s produced. p, too, must have been fixed before s sampled: a policy that was
updated on these very samples no longer has a mean weight of 1.

Everything takes log-probabilities by name, for two log arrays that trade places give an equally
plausible number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kullback.arrays import at_least_float32, namespace, quiet
from kullback.formulas.claim import (
    BOTH_FIXED,
    P_INSIDE_SAMPLER,
    Q_INSIDE_SAMPLER,
    TARGET_FIXED,
    TARGET_INSIDE_SAMPLER,
    UNSELECTED,
    Claim,
)
from kullback.formulas.k_family import OVERFLOW, k1, k2, k3

# Above log(q/p) = 45 the terms of p in q - p - p log(q/p) are 1e-18 of q: q/s stands alone, and
# neither w = 0 times r = inf nor the difference of two overflows arises.
Q_ALONE = 45.0


def control(*, log_target: Any, log_sampler: Any) -> Any:
    """The weight less one: w - 1 with the target p, q/s - 1 with the target q.

    target(x) / s(x) - 1

    Mean zero when the target was fixed before x ~ s was drawn, nothing was selected on the
    outcome, and the target puts no mass where s has none; otherwise the target's mass on the
    support of s, less 1. Can be negative. Differentiated through log_target
    its expected gradient is zero. Its mean times any constant may be taken off an estimate.

    Args:
        log_target: log-probabilities of the samples under p, or under q, nats.
        log_sampler: log-probabilities of the samples under the policy that drew them, nats.

    Returns:
        One number per sample, >= -1.

    Example:
        >>> from math import log
        >>> round(float(control(log_target=log(0.5), log_sampler=log(0.4))), 6)
        0.25
    """
    xp = namespace(log_target, log_sampler)
    with quiet(xp):
        return xp.expm1(at_least_float32(log_target, xp) - at_least_float32(log_sampler, xp))


def weighted_k1(*, log_p: Any, log_q: Any, log_sampler: Any) -> Any:
    """The plain estimate of KL(p||q) from a third policy's samples.

    w k1 = -w log(q/p),  w = p/s

    Unbiased for KL(p||q) when p and q were fixed before x ~ s was drawn, nothing was selected on
    the outcome, and p puts no mass where s has none. Can be negative. Differentiated through log_p,
    weight included, its expected gradient is that of KL(p||q); with the weight held constant it
    is k1's, zero. Source: importance sampling.

    Args:
        log_p: log-probabilities of the samples under p, nats.
        log_q: log-probabilities of the samples under q, nats.
        log_sampler: log-probabilities of the samples under the policy that drew them, nats.

    Returns:
        One number per sample, nats; 0 where p(x) = 0, +inf where only q(x) = 0.

    Example:
        >>> round(float(weighted_k1(log_p=-1.0, log_q=-1.5, log_sampler=-1.0)), 6)
        0.5
    """
    xp, p, q, sampler = _lifted(log_p, log_q, log_sampler)
    with quiet(xp):
        return _weighted(p - sampler, k1, _log_q_over_p(p, q, xp), xp)


def weighted_k2(*, log_p: Any, log_q: Any, log_sampler: Any) -> Any:
    """Half the squared log-ratio from a third policy's samples.

    w k2 = w (log(q/p))^2 / 2,  w = p/s

    Unbiased for E_p[(log r)^2] / 2 on the conditions of `weighted_k1`; never negative. The
    weight decides its gradient: held constant, the expected gradient is that of KL(p||q);
    differentiated too, that of E_p[(log r)^2] / 2. Source: importance sampling.

    Args:
        log_p: log-probabilities of the samples under p, nats.
        log_q: log-probabilities of the samples under q, nats.
        log_sampler: log-probabilities of the samples under the policy that drew them, nats.

    Returns:
        One number per sample, >= 0; 0 where p(x) = 0, +inf where only q(x) = 0.

    Example:
        >>> round(float(weighted_k2(log_p=-1.0, log_q=-1.5, log_sampler=-1.0)), 6)
        0.125
    """
    xp, p, q, sampler = _lifted(log_p, log_q, log_sampler)
    with quiet(xp):
        return _weighted(p - sampler, k2, _log_q_over_p(p, q, xp), xp)


def weighted_k3(*, log_p: Any, log_q: Any, log_sampler: Any) -> Any:
    """The estimate of KL(p||q) from a third policy's samples that is never negative.

    w k3 = w (q/p - 1 - log(q/p)) = q/s - p/s - (p/s) log(q/p),  w = p/s

    Unbiased for KL(p||q) on the conditions of `weighted_k1` when q, too, puts no mass where s
    has none; where q alone does, its mean is KL(p||q) + Q(supp s) - 1. Differentiated through
    log_p, weight included, its expected gradient is that of KL(p||q); with the weight held
    constant it is that of KL(q||p). Source: importance sampling of k3.

    Args:
        log_p: log-probabilities of the samples under p, nats.
        log_q: log-probabilities of the samples under q, nats.
        log_sampler: log-probabilities of the samples under the policy that drew them, nats.

    Returns:
        One number per sample, nats, >= 0; q(x)/s(x) where p(x) = 0, +inf where only q(x) = 0.

    Example:
        >>> round(float(weighted_k3(log_p=-1.0, log_q=-1.5, log_sampler=-1.0)), 6)
        0.106531
        >>> float(weighted_k3(log_p=float("-inf"), log_q=-1.0, log_sampler=-1.0))
        1.0
    """
    xp, p, q, sampler = _lifted(log_p, log_q, log_sampler)
    with quiet(xp):
        log_q_over_p = _log_q_over_p(p, q, xp)
        q_alone = log_q_over_p > Q_ALONE
        together = _weighted(p - sampler, k3, xp.where(q_alone, 0.0, log_q_over_p), xp)
        return xp.where(q_alone, xp.exp(xp.where(q_alone, q - sampler, 0.0)), together)


def _lifted(*logs: Any) -> tuple[Any, ...]:
    """Their namespace, and each in float32 at least."""
    xp = namespace(*logs)
    return xp, *(at_least_float32(one, xp) for one in logs)


# What is not selected is replaced before it is computed, not after: its value would be left out,
# but its gradient is 0 times something infinite.


def _log_q_over_p(log_p: Any, log_q: Any, xp: Any) -> Any:
    impossible = (log_p == -xp.inf) & (log_q == -xp.inf)
    return xp.where(impossible, 0.0, log_q) - xp.where(impossible, 0.0, log_p)


def _weighted(log_weight: Any, formula: Callable[[Any], Any], log_q_over_p: Any, xp: Any) -> Any:
    """The product of w and the formula, in which a zero wins over an infinity, of either factor."""
    nothing = log_weight == -xp.inf
    value = formula(xp.where(nothing, 0.0, log_q_over_p))
    # A value of 0 with a weight that is not infinite still has a gradient: p = q at the first step.
    lost, infinite = nothing | ((value == 0) & (log_weight > OVERFLOW)), xp.isinf(value)
    weight = xp.exp(xp.where(lost | infinite, 0.0, log_weight))
    product = weight * xp.where(lost | infinite, 0.0, value)
    return xp.where(infinite, value, product)


_DRAW = (BOTH_FIXED, UNSELECTED)

# Here p is differentiated in both places, weight included. Then E_s[d(w k)] = d E_s[w k], the
# gradient of the mean itself: s is fixed, so there is no score term to forget.
CLAIMS = {
    "control": Claim(
        "0",
        "s",
        (TARGET_FIXED, UNSELECTED, TARGET_INSIDE_SAMPLER),
        can_be_negative=True,
        expected_gradient="0",
        mean_without_support="P(supp s) - 1",
    ),
    "weighted_k1": Claim(
        "KL(p||q)",
        "s",
        (*_DRAW, P_INSIDE_SAMPLER),
        can_be_negative=True,
        expected_gradient="KL(p||q)",
        mean_without_support="sum over supp s of p log(p/q)",
    ),
    "weighted_k2": Claim(
        "E_p[(log r)^2] / 2",
        "s",
        (*_DRAW, P_INSIDE_SAMPLER),
        can_be_negative=False,
        expected_gradient="E_p[(log r)^2] / 2",
        mean_without_support="sum over supp s of p (log r)^2 / 2",
    ),
    "weighted_k3": Claim(
        "KL(p||q)",
        "s",
        (*_DRAW, P_INSIDE_SAMPLER, Q_INSIDE_SAMPLER),
        can_be_negative=False,
        expected_gradient="KL(p||q)",
        mean_without_support="sum over supp s of p log(p/q), + Q(supp s) - P(supp s)",
    ),
}
