"""Divergences of two arrays of probabilities: KL, Jensen-Shannon, chi-square and their kin.

p comes first. With p = q every one of them is 0, and none is ever negative.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kullback.arrays import cast, namespace, only_where, own, quiet, sum_dtype
from kullback.formulas import distributions
from kullback.formulas.categorical import exact, lined_up
from kullback.formulas.k_family import k3

# How far a sum may be off 1, by precision: a float32 softmax over 150,000 ids was seen 1.2e-5 off.
_SUM_TOLERANCE = {"bfloat16": 1e-2, "float16": 1e-2, "float32": 1e-4}


def divergence(p: Any, q: Any, kind: str = "kl", order: float | None = None) -> Any:
    """The divergence of p from q: of rows of probabilities, or of distribution objects.

    D(p||q), with A(a) = sum p^a q^(1 - a):

        kl         sum p log(p/q)
        js         kl(p, m) / 2 + kl(q, m) / 2,  m = (p + q) / 2
        chi2       sum (p - q)^2 / q
        tv         sum |p - q| / 2
        hellinger  sqrt(sum (sqrt p - sqrt q)^2 / 2)
        alpha      (A(order) - 1) / (order (order - 1)),  kl at order 1, kl(q, p) at order 0
        renyi      log A(order) / (order - 1),  kl at order 1, log max p/q at order inf

    All exact, in nats where there is a logarithm, and computed from terms that are never
    negative, so that rows which sum to 1 only nearly are off in second order only.

    With torch and JAX it can be traced and differentiated; a row that is no distribution is NaN
    there rather than an error. Categories that neither side has get a gradient of 0.

    Args:
        p: [..., categories] probabilities; or a distribution of torch.distributions or a frozen
            one of scipy.stats: Gaussians (any covariance) and those of finitely many outcomes
            of either library, for kl whatever torch.distributions has a closed form for.
        q: [..., categories] probabilities, or one row to compare every row of p with; or a
            distribution of the same library.
        kind: one of the names above.
        order: the order a of "alpha" (any finite number) and "renyi" (0 or more), no other kind.

    Returns:
        [...] in float64 where the device has it; +inf where one side rules out what the other
        does and the kind minds.

    Raises:
        ValueError: for a negative or missing probability, a row whose sum is off 1 by more than
            1e-6 (float32: 1e-4, float16: 0.01), rows over different categories, an unknown kind,
            an order out of place, or distributions without a closed form.

    Example:
        >>> round(float(divergence([0.5, 0.5], [0.9, 0.1])), 6)
        0.510826
        >>> round(float(divergence([0.5, 0.5], [0.9, 0.1], "renyi", order=2)), 6)
        1.021651
    """
    of = _function(kind, order)
    if distributions.is_distribution(p) or distributions.is_distribution(q):
        return _of_objects(p, q, kind, order)
    xp = namespace(p, q)
    left, right = probabilities("p", p, xp), probabilities("q", q, xp)
    lined_up(left, right)
    with quiet(xp):
        return of(left, right, xp)


def _of_objects(p: Any, q: Any, kind: str, order: float | None) -> Any:
    """The divergence of two distribution objects, by what is known of their families."""
    left, right = distributions.read(p, q)
    found = None
    if isinstance(left, distributions.Outcomes) and isinstance(right, distributions.Outcomes):
        return divergence(left.probabilities, right.probabilities, kind, order)
    if isinstance(left, distributions.Normals) and isinstance(right, distributions.Normals):
        found = distributions.of_normals(left, right, kind, order)
    elif kind == "kl":
        found = distributions.registered_kl(p, q)
    if found is None:
        raise ValueError(
            f"no closed form of {kind} is known for {distributions.name(p)} and "
            f"{distributions.name(q)}: sample from p and estimate the KL from the log-densities, "
            "kb.estimate(log_p=…, log_q=…, lengths=1)"
        )
    return found


def _function(kind: str, order: float | None) -> Callable[[Any, Any, Any], Any]:
    """The function of (p, q, namespace) that a kind and its order stand for."""
    if kind in _KINDS and order is None:
        return _KINDS[kind]
    if kind == "alpha" and order is not None and abs(order) < float("inf"):
        return partial(_alpha, order=order)
    if kind == "renyi" and order is not None and order >= 0:
        return partial(_renyi, order=order)
    raise ValueError(
        f"kind={kind!r} with order={order}: expected one of {', '.join(_KINDS)} without an order, "
        "alpha with a finite order, or renyi with an order of 0 or more"
    )


def probabilities(name: str, values: Any, xp: Any = None) -> Any:
    """The values in the precision of sums, each row of them a distribution.

    Raises:
        ValueError: for the first row that is none, and why (NumPy; NaN with torch and JAX).

    Example:
        >>> probabilities("p", [[0.5, 0.5], [0.5, 0.6]])
        Traceback (most recent call last):
        ValueError: p, row 1 has the sum 1.1, expected probabilities >= 0 that sum to 1 ...
    """
    xp = namespace(values) if xp is None else xp
    array = own(values, xp)
    tolerance = _SUM_TOLERANCE.get(str(array.dtype).removeprefix("torch."), 1e-6)
    if array.ndim == 0:
        raise ValueError(f"{name} is one number, expected probabilities along the last axis")
    array = cast(array, sum_dtype(array, xp), xp)
    total = xp.sum(array, axis=-1, keepdims=True)
    right = xp.all(array >= 0, axis=-1, keepdims=True) & (xp.abs(total - 1) <= tolerance)

    def complaint(ok: Any) -> ValueError:
        row = tuple(xp.argwhere(~ok[..., 0])[0].tolist())
        place = f", row {row[0] if len(row) == 1 else row}" if row else ""
        missing = not (array[row] >= 0).all()
        found = "a negative or missing number" if missing else f"the sum {total[row][0]:.9g}"
        return ValueError(
            f"{name}{place} has {found}, expected probabilities >= 0 that sum to 1 within "
            f"{tolerance:g}; normalize it, or pass logits to exact()"
        )

    return only_where(right, array, xp, complaint)


# Where a probability is 0 its logarithm, root or reciprocal is replaced before it is computed: left
# out afterwards, it would still make the gradient NaN.


def _log(p: Any, xp: Any) -> Any:
    return xp.where(p > 0, xp.log(xp.where(p > 0, p, 1.0)), -xp.inf)


def _root(x: Any, xp: Any) -> Any:
    return xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), 0.0)


def _kl(p: Any, q: Any, xp: Any) -> Any:
    return exact(log_probs_p=_log(p, xp), log_probs_q=_log(q, xp))


def _js(p: Any, q: Any, xp: Any) -> Any:
    middle = (p + q) / 2
    return (_kl(p, middle, xp) + _kl(q, middle, xp)) / 2


def _chi2(p: Any, q: Any, xp: Any) -> Any:
    shared = (p - q) ** 2 / xp.where(q > 0, q, 1.0)
    return xp.sum(xp.where(q > 0, shared, xp.where(p > 0, xp.inf, 0.0)), axis=-1)


def _tv(p: Any, q: Any, xp: Any) -> Any:
    # Not abs, whose slope at 0 the libraries do not agree on.
    return xp.sum((p - q) * xp.sign(p - q), axis=-1) / 2


def _hellinger(p: Any, q: Any, xp: Any) -> Any:
    return _root(xp.sum((_root(p, xp) - _root(q, xp)) ** 2, axis=-1) / 2, xp)


def _alpha(p: Any, q: Any, xp: Any, order: float) -> Any:
    if order == 1:
        return _kl(p, q, xp)
    if order == 0:
        return _kl(q, p, xp)
    both = (p > 0) & (q > 0)
    log_p_over_q = xp.log(xp.where(both, p, 1.0)) - xp.log(xp.where(both, q, 1.0))
    # A - 1 = sum of q (t^a - 1 - a (t - 1)), t = p/q, and t^a - 1 - a (t - 1) = k3(a log t) -
    # a k3(log t): the first-order terms, which cancel, are gone. Where one side is 0, its limit.
    shared = q * (k3(order * log_p_over_q) - order * k3(log_p_over_q)) / (order * (order - 1))
    p_alone = p / (1 - order) if order < 1 else xp.inf
    q_alone = q / order if order > 0 else xp.inf
    alone = xp.where(p > 0, p_alone, xp.where(q > 0, q_alone, 0.0))
    return xp.sum(xp.where(both, shared, alone), axis=-1)


def _renyi(p: Any, q: Any, xp: Any, order: float) -> Any:
    if order == 1:
        return _kl(p, q, xp)
    both = (p > 0) & (q > 0)
    p_over_q = xp.where(both, p, 0.0) / xp.where(both, q, 1.0)
    if order == float("inf"):
        return xp.log(xp.amax(xp.where((p > 0) & ~both, xp.inf, p_over_q), axis=-1))
    if order == 0:
        return 0.0 - xp.log(xp.sum(xp.where(p > 0, q, 0.0), axis=-1))
    excess = order * (order - 1) * _alpha(p, q, xp, order)  # A - 1, accurate near 0
    terms = xp.where(both, q, 0.0) * xp.where(both, p_over_q, 1.0) ** order  # of A, near 0
    alone = xp.inf if order > 1 else 0.0
    overlap = xp.sum(xp.where((p > 0) & ~both, alone, terms), axis=-1)
    near = xp.abs(excess) < 0.5
    log_overlap = xp.where(
        near, xp.log1p(xp.where(near, excess, 0.0)), xp.log(xp.where(near, 1.0, overlap))
    )
    return log_overlap / (order - 1)


_KINDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "kl": _kl,
    "js": _js,
    "chi2": _chi2,
    "tv": _tv,
    "hellinger": _hellinger,
}
