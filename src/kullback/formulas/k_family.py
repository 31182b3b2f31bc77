"""k1, k2, k3 and their relatives: one sampled log-ratio to one term of a KL estimate.

Every function takes log_q_over_p = log q(x) - log p(x) for a sample x ~ p and returns one number
per sample, in nats. The mean over many samples is the estimate, and belongs elsewhere. `CLAIMS`
says what that mean is, when, and what its gradient is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

from kullback.arrays import at_least_float32, like, namespace, quiet
from kullback.formulas.claim import LAM_FIXED, Q_FIXED, Q_INSIDE_P, UNSELECTED, Claim

# Below _NEAR the difference expm1(x) - x cancels, so the Taylor series is summed instead; above
# it the difference costs at most two bits. 1.25 rather than 1 because between 1.10 and 1.15
# expm1 exceeds 2 while k3 is below 1. The first term left out is 3e-18 of the sum there.
_NEAR = 1.25
_TAYLOR = tuple(1 / factorial(n) for n in range(20, 1, -1))
OVERFLOW = 88.0  # the logarithm above which a float32 may be infinite
_FLOOR = -1e4  # log r below which r is 0 in any precision


def k1(log_q_over_p: Any) -> Any:
    """The plain estimate of KL(p||q): unbiased, noisy, negative for many samples.

    k1 = -log r = log p(x) - log q(x)

    Unbiased for KL(p||q) when q was fixed before x ~ p was drawn and nothing was selected on the
    outcome. Differentiated through log p its expected gradient is zero: it belongs in a reward,
    not in a loss. Source: the definition of KL.

    Args:
        log_q_over_p: log q(x) - log p(x) of the samples, any shape, nats.

    Returns:
        One number per sample, nats; +inf where q(x) = 0.

    Example:
        >>> round(float(k1(-0.5)), 6)
        0.5
    """
    return 0.0 - at_least_float32(log_q_over_p)  # not -x: equal policies shall print 0, not -0


def k2(log_q_over_p: Any) -> Any:
    """Half the squared log-ratio: never negative, low noise, biased for the KL.

    k2 = (log r)^2 / 2

    Its mean is E_p[(log r)^2] / 2 = (Var(k1) + KL(p||q)^2) / 2, equal to KL(p||q) up to third
    order in log r. Differentiated through log p on policy its expected gradient is exactly that
    of KL(p||q): a biased number with the right gradient.
    Source: Schulman, Approximating KL Divergence, 2020.

    Args:
        log_q_over_p: log q(x) - log p(x) of the samples, any shape, nats.

    Returns:
        One number per sample, nats squared read as nats; +inf where q(x) = 0.

    Example:
        >>> round(float(k2(-0.5)), 6)
        0.125
    """
    xp = namespace(log_q_over_p)
    with quiet(xp):
        log_r = at_least_float32(log_q_over_p, xp)
        return log_r * log_r / 2


def k3(log_q_over_p: Any) -> Any:
    """The estimate of KL(p||q) that is never negative.

    k3 = (r - 1) - log r

    Unbiased for KL(p||q) when q was fixed before x ~ p was drawn, nothing was selected on the
    outcome, and q puts no mass where p has none; otherwise its mean is KL(p||q) + Q(supp p) - 1.
    Differentiated through log p on policy its expected gradient is that of KL(q||p), the other
    direction. Source: Schulman, Approximating KL Divergence, 2020.

    Within 4 ulp in float64 and 3 in float32, in NumPy, torch and JAX (results/ulps.json); 0 only at
    0 or where the result underflows. exp(x) - 1 - x is wrong in every digit at 1e-4 in float32.

    Args:
        log_q_over_p: log q(x) - log p(x) of the samples, any shape, nats.

    Returns:
        One number per sample, nats, >= 0; +inf where q(x) = 0 and where r overflows.

    Example:
        >>> round(float(k3(-0.5)), 6), float(k3(0.0)), float(k3(float("-inf")))
        (0.106531, 0.0, inf)
    """
    return k_lambda(log_q_over_p, 1.0)


def k_lambda(log_q_over_p: Any, lam: Any) -> Any:
    """The estimate of KL(p||q) with the control r - 1 taken lam times: k1 at 0, k3 at 1.

    k_lambda = -log r + lam (r - 1)

    Unbiased for KL(p||q) for every lam that was fixed beforehand, on the conditions of k3; its
    variance is least at lam = J / chi2 (see `shape`). Never negative at lam = 1 only.
    Differentiated through log p on policy its expected gradient is lam times that of KL(q||p).

    Args:
        log_q_over_p: log q(x) - log p(x) of the samples, any shape, nats.
        lam: how much of the control to use, broadcast against the samples.

    Returns:
        One number per sample, nats.

    Example:
        >>> round(float(k_lambda(-0.5, 0.9)), 6)
        0.145878
    """
    xp = namespace(log_q_over_p, lam)
    with quiet(xp):
        log_r = at_least_float32(log_q_over_p, xp)
        near = xp.abs(log_r) < _NEAR
        small = xp.where(near, log_r, 0.0)  # selected before it is raised to powers
        series = 0.0
        for coefficient in _TAYLOR:
            series = series * small + coefficient
        # k_lambda = lam k3 + (1 - lam) k1, so that lam = 1 is k3 without the cancellation of r - 1.
        close = lam * (small * small * series) - (1.0 - lam) * small
        # Where lam is 0, r may overflow: 0 * inf, in the gradient too.
        unused = (like(lam, log_r, xp) == 0) & (log_r > OVERFLOW)
        control = lam * xp.expm1(xp.where(unused, 0.0, log_r))
        return xp.where(near, close, xp.where(xp.isinf(control), control, control - log_r))


def other_direction(log_q_over_p: Any) -> Any:
    """The estimate of KL(q||p) from samples of p that is never negative.

    r log r - (r - 1)

    Unbiased for KL(q||p) on the conditions of k3. Differentiated through log p on policy its
    expected gradient is that of E_q[(log r)^2] / 2, not that of KL(q||p).
    Source: the form f(r) - f'(1)(r - 1) with f(r) = r log r (Schulman 2020).

    Args:
        log_q_over_p: log q(x) - log p(x) of the samples, any shape, nats.

    Returns:
        One number per sample, nats, >= 0; 1 where q(x) = 0.

    Example:
        >>> round(float(other_direction(-0.5)), 6), float(other_direction(float("-inf")))
        (0.090204, 1.0)
    """
    xp = namespace(log_q_over_p)
    with quiet(xp):
        log_r = at_least_float32(log_q_over_p, xp)
        # r log r - (r - 1) = r k3(-log r) where its terms cancel; elsewhere as it stands, with one
        # exponential, so that its slope is infinite where r is, and not inf - inf.
        near = xp.abs(log_r) < _NEAR
        small = xp.where(near, log_r, 0.0)
        large = xp.where(near, 0.0, xp.where(log_r < _FLOOR, _FLOOR, log_r))
        return xp.where(near, xp.exp(small) * k3(0.0 - small), xp.exp(large) * (large - 1.0) + 1.0)


def f_form(
    log_q_over_p: Any,
    f: Callable[[Any], Any],
    slope_at_one: float,
) -> Any:
    """The estimate of any f-divergence from samples of p that is never negative.

    f(r) - f'(1) (r - 1)

    Unbiased for D_f(q||p) = E_p[f(r)] on the conditions of k3, for every convex f with f(1) = 0:
    a convex curve lies above its tangent at 1, and the tangent has mean zero. k3 is f = -log,
    `other_direction` is f = r log r; both are computed better than f can be, since near r = 1 the
    difference cancels to about 1e-16, of either sign. Differentiated through log p on policy its
    expected gradient is that of D_g(q||p) with g(r) = r * integral_1^r (f'(u) - f'(1)) / u du.
    Source: Schulman 2020 for the value.

    Args:
        log_q_over_p: log q(x) - log p(x) of the samples, any shape, nats.
        f: a convex function of r with f(1) = 0.
        slope_at_one: its derivative at r = 1 (any subgradient where f has a corner).

    Returns:
        One number per sample; NaN where r and f(r) are both infinite and the slope is not 0.

    Example:
        >>> round(float(f_form(-0.5, lambda r: (r - 1) ** 2, slope_at_one=0.0)), 6)
        0.154818
    """
    xp = namespace(log_q_over_p)
    with quiet(xp):
        log_r = at_least_float32(log_q_over_p, xp)
        value = f(xp.exp(log_r))
        return value if slope_at_one == 0 else value - slope_at_one * xp.expm1(log_r)


_DRAW = (Q_FIXED, UNSELECTED)

# The gradients. With s = d log p and a formula k(log r), the mean sample gradient is
# E_p[-k'(log r) s]. k1: E_p[s] = 0. k2: -E_p[log r s] = d KL(p||q). k3: -E_p[(r - 1) s] =
# -E_q[s] = d KL(q||p). other_direction: -E_p[r log r s] = -E_q[log r s] = d E_q[(log r)^2] / 2.
# f_form: -E_p[r (f'(r) - f'(1)) s] against d D_g(q||p) = E_p[(g(r) - r g'(r)) s]: the two agree
# when (g/r)' = (f'(r) - f'(1)) / r.
CLAIMS = {
    "k1": Claim("KL(p||q)", "p", _DRAW, can_be_negative=True, expected_gradient="0"),
    "k2": Claim(
        "E_p[(log r)^2] / 2", "p", _DRAW, can_be_negative=False, expected_gradient="KL(p||q)"
    ),
    "k3": Claim(
        "KL(p||q)",
        "p",
        (*_DRAW, Q_INSIDE_P),
        can_be_negative=False,
        expected_gradient="KL(q||p)",
        mean_without_support="KL(p||q) + Q(supp p) - 1",
    ),
    "k_lambda": Claim(
        "KL(p||q)",
        "p",
        (*_DRAW, Q_INSIDE_P, LAM_FIXED),
        can_be_negative=True,
        expected_gradient="lam * KL(q||p)",
        mean_without_support="KL(p||q) + lam * (Q(supp p) - 1)",
    ),
    "other_direction": Claim(
        "KL(q||p)",
        "p",
        (*_DRAW, Q_INSIDE_P),
        can_be_negative=False,
        expected_gradient="E_q[(log r)^2] / 2",
        mean_without_support="sum over supp p of q log(q/p), + 1 - Q(supp p)",
    ),
    "f_form": Claim(
        "D_f(q||p)",
        "p",
        (*_DRAW, Q_INSIDE_P),
        can_be_negative=False,
        expected_gradient="D_g(q||p), g(r) = r * integral_1^r (f'(u) - f'(1)) / u du",
        mean_without_support="sum over supp p of p f(q/p), + f'(1) (1 - Q(supp p))",
    ),
}
