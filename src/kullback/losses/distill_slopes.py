"""What a divergence is differentiated through: cheap formulas whose every derivative is its own.

The terms that lose no digits (`distill_terms`) take some thirty operations, and a backward pass
would keep the results of all of them, each as large as the vocabulary. So their value is taken as
a constant, and the derivative from a function of few operations that differs from them by a
constant, and is finite everywhere. Its own value, which may have lost its digits, is never read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kullback.arrays import held, namespace
from kullback.formulas.k_family import OVERFLOW

Formula = Callable[[Any, Any], Any]  # of the logs of the teacher and of the student


def carried(value: Formula, slope: Formula) -> Formula:
    """The value of the first, differentiated in the student, to any order, through the second.

    Args:
        value: finite or infinite, never differentiated.
        slope: finite.

    Example:
        >>> import numpy as np
        >>> both = carried(lambda log_t, log_s: log_s - log_t, lambda log_t, log_s: 7.0 * log_s)
        >>> float(both(np.log(0.5), np.log(0.5)))
        0.0
    """

    def both(log_t: Any, log_s: Any) -> Any:
        xp = namespace(log_t, log_s)
        if xp is np:
            return value(log_t, log_s)
        log_t = held(log_t, xp)
        through = slope(log_t, log_s)
        return value(log_t, held(log_s, xp)) + (through - held(through, xp))

    return both


def slope(divergence: str, share: float | None) -> Formula:
    """The formula through which a divergence is differentiated.

    Args:
        divergence: one of `kullback.losses.distill_terms.CLAIMS`.
        share: its weight or order, above 0 and below 1, if it has one.

    Example:
        >>> import numpy as np
        >>> through = slope("KL(teacher||student)", None)  # S - T log S
        >>> round(float(through(np.log(0.5), np.log(0.25))), 6)
        0.943147
    """
    if share is None:
        return _SLOPES[divergence]
    return partial(_SLOPES[divergence], share=share)


def unlike(log_x: Any, log_y: Any, a: float) -> Any:
    """X - y - y ((x/y)^a - 1) / a: right where x and y are not alike, differentiable anywhere.

    Args:
        log_x: the logs of x.
        log_y: the logs of y.
        a: above 0, 1/2 at most.

    Example:
        >>> import numpy as np
        >>> float(unlike(np.log(0.5), np.array(-np.inf), 0.25))
        0.5
    """
    xp = namespace(log_x, log_y)
    neither = (log_x == -xp.inf) & (log_y == -xp.inf)
    v = xp.where(neither, 0.0, log_x) - xp.where(neither, 0.0, log_y)  # log(x/y)
    x, y = xp.exp(log_x), xp.exp(log_y)
    # Where x outweighs y by so much, all that y does is 1e-17 of it, and exp would overflow.
    return x - y - y * (xp.expm1(a * xp.where(v > OVERFLOW, 0.0, v)) / a)


def _teacher_first(log_t: Any, log_s: Any) -> Any:
    xp = namespace(log_t, log_s)
    return xp.exp(log_s) - xp.exp(log_t) * _finite(log_s, xp)


def _student_first(log_t: Any, log_s: Any) -> Any:
    xp = namespace(log_t, log_s)
    return xp.exp(log_s) * (_finite(log_s, xp) - _finite(log_t, xp) - 1.0)


def _to_mixture(log_t: Any, log_s: Any, share: float, of_t: float, of_s: float) -> Any:
    """Those of of_t KL(T||M) + of_s KL(S||M), M = share T + (1 - share) S."""
    xp = namespace(log_t, log_s)
    t, s = xp.exp(log_t), xp.exp(log_s)
    mixture = share * t + (1.0 - share) * s
    log_m = xp.log(xp.where(mixture > 0, mixture, 1.0))
    both = (of_t + of_s) * mixture - (of_t * t + of_s * s) * log_m
    return both + of_s * s * (_finite(log_s, xp) - 1.0) if of_s else both


def _skew_teacher(log_t: Any, log_s: Any, share: float) -> Any:
    return _to_mixture(log_t, log_s, share, 1.0, 0.0)


def _skew_student(log_t: Any, log_s: Any, share: float) -> Any:
    return _to_mixture(log_t, log_s, 1.0 - share, 0.0, 1.0)


def _jsd(log_t: Any, log_s: Any, share: float) -> Any:
    return _to_mixture(log_t, log_s, share, 1.0 - share, share)


def _jsd_matched(log_t: Any, log_s: Any, share: float) -> Any:
    return _to_mixture(log_t, log_s, share, share, 1.0 - share)


def _alpha(log_t: Any, log_s: Any, share: float) -> Any:
    if share > 0.5:
        return unlike(log_s, log_t, 1.0 - share) / share
    return unlike(log_t, log_s, share) / (1.0 - share)


def _finite(log_x: Any, xp: Any) -> Any:
    return xp.where(log_x == -xp.inf, 0.0, log_x)


_SLOPES: dict[str, Callable[..., Any]] = {
    "KL(teacher||student)": _teacher_first,
    "KL(student||teacher)": _student_first,
    "skew KL(teacher||student)": _skew_teacher,
    "skew KL(student||teacher)": _skew_student,
    "jsd": _jsd,
    "jsd-matched": _jsd_matched,
    "alpha": _alpha,
}
