"""The sums of a pair of rows in one pass through the cache, for Numba to compile.

The formulas of kullback.formulas stand here a second time, for speed; one test ties the two. The
functions are plain Python until `load` hands them to Numba, so that nothing needs Numba before.

What makes it fast. Numba has no vector exponential on most machines, so this file has its own: 2^n
times a polynomial. What may be reordered (sums) stands in other functions than what may not (the
reduction of the exponential). Loops run over slices from 0. Comparisons become float masks, since a
count in integers halves the vector.

What makes it exact. In e^x = s (1 + f + g), s = 2^n, the polynomial is g = e^f - 1 - f itself, so
that e^x - 1 - x near 0 is read off and not what a subtraction leaves. Tiles of 2048 are summed in
float32, tiles in float64. Where that cannot hold (log q/p above 30, below -80, or infinite) the
tile is summed again in float64, one category at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from math import exp, expm1, inf, isnan, log, log1p
from typing import Any

import numpy as np

_TILE = 2048
_F = np.float32
_SIGN, _INF = np.int32(31), np.float32(np.inf)
_OTHER_BITS = np.int32(0x7FFFFFFF)
_LOWEST = np.int32(-(2**31))
_LOG2E, _LN2_HIGH, _LN2_LOW = _F(1.4426950408889634), _F(0.693359375), _F(-2.12194440e-4)
_ROUNDER = _F(12582912.0)  # 1.5 * 2^23: adding and subtracting it rounds to an integer
_LEAST, _MOST, _FLUSH = _F(-80.0), _F(30.0), _F(-87.0)

_WAITING: list[tuple[Callable[..., Any], dict[str, Any]]] = []


def _compiled(**how: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function for `load`."""

    def remember(function: Callable[..., Any]) -> Callable[..., Any]:
        _WAITING.append((function, how))
        return function

    return remember


# reassoc lets sums use all lanes of a vector; where it would undo the exponential it is left out.
_STRICT = _compiled(forceinline=True, fastmath={"contract", "nsz"}, error_model="numpy")
_SUMS = _compiled(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
_ROWS = _compiled(nogil=True, cache=True, error_model="numpy")


@cache
def load() -> Any:
    """Compile this file, or read what an earlier process compiled; the module is the answer.

    Numba takes a name inside a function for what the module holds under it, so each function is
    replaced by its compiled self, in the order of the file.
    """
    njit = import_module("numba").njit
    for function, how in _WAITING:
        globals()[function.__name__] = _handed_to(njit, function, how)
    return import_module(__name__)


def _handed_to(njit: Callable[..., Any], function: Callable[..., Any], how: dict[str, Any]) -> Any:
    try:
        return njit(**how)(function)
    except RuntimeError:  # no folder that Numba may write to: compiled anew in each process
        return njit(**{**how, "cache": False})(function)


@_STRICT
def _parts(x: Any) -> Any:
    """s, f, g with e^x = s (1 + f + g), s a power of 2 and g = e^f - 1 - f."""
    n = (x * _LOG2E + _ROUNDER) - _ROUNDER
    f = (x - n * _LN2_HIGH) - n * _LN2_LOW
    g = _F(1.9875691500e-4)
    g = g * f + _F(1.3981999507e-3)
    g = g * f + _F(8.3334519073e-3)
    g = g * f + _F(4.1665795894e-2)
    g = g * f + _F(1.6666665459e-1)
    g = g * f + _F(5.0000001201e-1)
    s = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return s, f, g * f * f


@_STRICT
def _exp(x: Any) -> Any:
    """e^x for x <= 0; 0 below the smallest normal float32."""
    s, f, g = _parts(max(x, _FLUSH))
    return s * (_F(1.0) + (f + g)) if not x <= _FLUSH else _F(0.0)


@_STRICT
def _key(bits: Any) -> Any:
    """The bits of a float32 as an integer that is ordered like it, and back."""
    return bits ^ ((bits >> _SIGN) & _OTHER_BITS)


@_compiled(error_model="numpy")
def _largest(bits: Any) -> Any:
    """The largest float32 of a row, found among integers: that comparison vectorizes."""
    most = _LOWEST
    for i in range(bits.size):
        most = max(most, _key(bits[i]))
    return np.int32(_key(most)).view(np.float32)


@_SUMS
def _sum_exp(z: Any, top: Any) -> Any:
    total = _F(0.0)
    for i in range(z.size):
        total += _exp(z[i] - top)
    return total


@_compiled(error_model="numpy")
def _log_normalizer(z: Any, bits: Any) -> Any:
    """Log sum exp of a row, in float64; NaN where it holds NaN, -inf where nothing is possible."""
    top = _largest(bits)
    if top == -_INF:
        return -inf
    total = 0.0
    for i in range(0, z.size, _TILE):
        total += _sum_exp(z[i : i + _TILE], top)
    return top + log(total)


@_STRICT
def _js_curve(t: Any, x: Any) -> Any:
    """(1 + t) log(1 + t) + (1 - t) log(1 - t) for t = tanh(x / 2) >= 0."""
    tt = t * t
    near = _F(1 / 66)
    near = near * tt + _F(1 / 45)
    near = near * tt + _F(1 / 28)
    near = near * tt + _F(1 / 15)
    near = near * tt + _F(1 / 6)
    near = (near * tt + _F(1.0)) * tt
    w = t / (_F(2.0) + t)  # log(1 + t) = 2 atanh(w)
    ww = w * w
    half = _F(1 / 13)
    half = half * ww + _F(1 / 11)
    half = half * ww + _F(1 / 9)
    half = half * ww + _F(1 / 7)
    half = half * ww + _F(1 / 5)
    half = half * ww + _F(1 / 3)
    half = (half * ww + _F(1.0)) * w
    return near if t < _F(0.3) else _F(4.0) * half - (_F(1.0) - t) * x


@_STRICT
def _log_ratio(a: Any, b: Any, whole: Any, rest: Any) -> Any:
    """Log q/p; 0 for a category that neither side can have.

    Taking off an integer rounds nothing, nor does the difference of what is then close.
    """
    return _F(0.0) if (a == -_INF) & (b == -_INF) else ((b - whole) - a) - rest


@_STRICT
def _weighted(a: Any, b: Any, z: Any) -> Any:
    """What one category adds to each of the six, and whether float32 can hold it."""
    high_p, low_p, high_q, low_q, whole, rest = z
    log_p, log_q = (a - high_p) - low_p, (b - high_q) - low_q
    x = _log_ratio(a, b, whole, rest)
    fine = (x >= _LEAST) & (x <= _MOST)
    x = min(max(x, _LEAST), _MOST)
    p = _exp(log_p)
    s, f, g = _parts(x)
    r = s + s * (f + g)
    e = (s - _F(1.0)) + s * (f + g)  # r - 1
    k3 = s * g + ((s - _F(1.0)) + (s * f - x))
    back = x * e - k3 if s == _F(1.0) else r * x - e  # r times k3 of the other direction
    js = p * (_F(2.0) + e) * _js_curve(abs(e) / (_F(2.0) + e), abs(x))
    log_p, log_q = max(log_p, _FLUSH), max(log_q, _FLUSH)  # where p is 0 the logarithm may be -inf
    return p * k3, p * back, -p * log_p, -p * r * log_q, p * e * e, _F(0.25) * js, fine


@_SUMS
def _tile(a: Any, b: Any, z: Any) -> Any:
    s0 = s1 = s2 = s3 = s4 = s5 = fine = _F(0.0)
    for i in range(a.size):
        t0, t1, t2, t3, t4, t5, ok = _weighted(a[i], b[i], z)
        s0 += t0
        s1 += t1
        s2 += t2
        s3 += t3
        s4 += t4
        s5 += t5
        fine += _F(1.0) if ok else _F(0.0)
    return (s0, s1, s2, s3, s4, s5), fine == a.size


@_compiled()
def _k3_of(u: Any) -> Any:
    """e^u - 1 - u in float64."""
    if abs(u) >= 1.0:
        return expm1(u) - u
    term, total = u * u / 2, 0.0
    for n in range(3, 20):
        total += term
        term *= u / n
    return total


@_compiled(error_model="numpy")
def _careful(log_p: Any, log_q: Any) -> Any:
    """What one category adds to each of the six, in float64, infinities included.

    Weighted by the larger of p and q, so that only exponentials of u = -|log q/p| are needed.
    """
    if log_p == -inf and log_q == -inf:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    p, q = exp(log_p), exp(log_q)
    x = log_q - log_p
    u = -abs(x)
    w, r, e = max(p, q), exp(u), expm1(u)
    # What one side rules out is infinite however little the other has of it.
    along = inf if u == -inf else w * _k3_of(u)
    r_u = r * u if r > 0.0 else 0.0
    against = w * (u * e - _k3_of(u)) if u > -1.0 else w * (r_u - e)
    t = -e / (2.0 + e)
    js = w * (2.0 + e) / 4.0 * (log1p(-t * t) - t * u) if u > -1.0 else 0.0
    js = w * (r_u - (1.0 + r) * log1p(e / 2.0)) / 2.0 if u <= -1.0 else js
    entropy_p = -p * log_p if p > 0.0 else 0.0
    entropy_q = -q * log_q if q > 0.0 else 0.0
    if isnan(x):
        return x, x, entropy_p, entropy_q, x, x
    if x <= 0.0:
        return along, against, entropy_p, entropy_q, p * e * e, js
    return against, along, entropy_p, entropy_q, exp(log_q + x) * e * e, js


@_compiled(error_model="numpy")
def _add_carefully(a: Any, b: Any, log_z_p: Any, log_z_q: Any, sums: Any) -> None:
    for i in range(a.size):
        log_p = a[i] - log_z_p if a[i] > -_INF or isnan(a[i]) else -inf
        log_q = b[i] - log_z_q if b[i] > -_INF or isnan(b[i]) else -inf
        terms = _careful(log_p, log_q)
        for k in range(6):
            sums[k] += terms[k]


@_compiled(error_model="numpy")
def _split(log_z_p: Any, log_z_q: Any) -> Any:
    """The normalizers, and their difference, in two float32 each."""
    high_p, high_q = _F(log_z_p), _F(log_z_q)
    shift = log_z_q - log_z_p
    whole = np.rint(shift)
    return high_p, _F(log_z_p - high_p), high_q, _F(log_z_q - high_q), _F(whole), _F(shift - whole)


@_ROWS
def normalize(z: Any, bits: Any, log_z: Any) -> None:
    """Write log sum exp of each row of z, whose bits are given as integers too."""
    for row in range(len(z)):
        log_z[row] = _log_normalizer(z[row], bits[row])


@_ROWS
def add_sums(p: Any, q: Any, log_z_p: Any, log_z_q: Any, sums: Any) -> None:
    """Add to sums [rows, 6] what the categories of each pair of rows make, in the order above."""
    for row in range(len(p)):
        a, b = p[row], q[row]
        z = _split(log_z_p[row], log_z_q[row])
        for i in range(0, a.size, _TILE):
            terms, fine = _tile(a[i : i + _TILE], b[i : i + _TILE], z)
            if fine:
                for k in range(6):
                    sums[row, k] += terms[k]
            else:
                _add_carefully(
                    a[i : i + _TILE], b[i : i + _TILE], log_z_p[row], log_z_q[row], sums[row]
                )
