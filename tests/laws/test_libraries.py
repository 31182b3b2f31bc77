"""One formula, three libraries: the same values, in one graph, with gradients that are finite."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import kullback as kb
from kullback.arrays import to_numpy
from kullback.formulas import gaussian, multivariate_gaussian
from kullback.formulas import partial as top_k
from kullback.formulas.categorical import log_softmax
from kullback.formulas.weights import control, weighted_k1, weighted_k2, weighted_k3
from kullback.question import LEVELS

from .laws import WORLDS, gradient_of
from .right_formulas import CLAIMS, ESTIMATORS

INF = np.inf


class Call(NamedTuple):
    """A function of arrays, and arrays that it takes, in float64."""

    function: Callable[..., Any]
    arrays: tuple[Any, ...]


LOG_R = [-20.0, -1.3, -1.2, -1e-3, 1e-9, 0.4, 1.24, 1.3, 3.0]
LOGS = ([-1.0, -0.2, -3.0], [-1.5, -0.1, -1.0], [-1.1, -0.4, -2.0])
LOGITS = ([[0.3, -1.0, 2.0], [0.0, 0.1, 0.2]], [[0.1, -1.0, 1.0], [0.0, 0.1, -3.0]])
ROWS = ([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]], [[0.4, 0.4, 0.2], [0.2, 0.2, 0.6]])
NORMALS = ([0.3, 1.0], [0.7, 1.1], [0.2, -1.0], [0.7, 1.4])
COVARIANCES = ([0.3, 1.0], [[1.0, 0.3], [0.3, 2.0]], [0.1, -1.0], [[1.5, -0.2], [-0.2, 1.0]])


def weighted(formula: Callable[..., Any]) -> Callable[..., Any]:
    return lambda p, q, s: formula(log_p=p, log_q=q, log_sampler=s)


def normals(function: Callable[..., Any], scale: str) -> Callable[..., Any]:
    names = ("mean_p", f"{scale}_p", "mean_q", f"{scale}_q")
    return lambda *arrays: function(**dict(zip(names, arrays, strict=True)))


def padded(level: str) -> Callable[..., Any]:
    def mean_k3(log_p: Any, log_q: Any) -> Any:
        log_r = kb.log_q_over_p(log_p=log_p, log_q=log_q)
        return kb.totals(kb.k3(log_r), mask=log_p < -0.5).at(level)

    return mean_k3


def partly_exact(form: str) -> Callable[..., Any]:
    """Two of three ids are known, and the token is the last or the first."""

    def value(logits_p: Any, logits_q: Any) -> Any:
        p, q = log_softmax(logits_p), log_softmax(logits_q)
        known = top_k.head(log_p=p[..., :2], log_q=q[..., :2])
        if form in ("lower_bound", "centre", "biased_head_renormalized"):
            return getattr(top_k, form)(known)
        draw: dict[str, Any] = {
            "log_q_over_p": (q - p)[..., 2],
            "inside": p[..., 2] < -1.5,
            "head": known,
        }
        return getattr(top_k, form)(**draw)

    return value


def pooled(log_r: Any) -> Any:
    both = kb.totals(kb.k3(log_r), lengths=3) + kb.totals(kb.k1(log_r), lengths=[2, 0, 7])
    return both.at("sequence_mean")


CALLS = {
    "k1": Call(kb.k1, (LOG_R,)),
    "k2": Call(kb.k2, (LOG_R,)),
    "k3": Call(kb.k3, (LOG_R,)),
    "k_lambda": Call(partial(kb.k_lambda, lam=0.3), (LOG_R,)),
    "k_lambda of an array": Call(kb.k_lambda, (LOG_R, [*[0.0] * 4, *[0.5] * 5])),
    "other_direction": Call(kb.other_direction, (LOG_R,)),
    "f_form": Call(lambda x: kb.f_form(x, lambda r: (r - 1) ** 2 + r, 1.0), (LOG_R,)),
    "control": Call(lambda p, s: control(log_target=p, log_sampler=s), LOGS[:2]),
    "weighted_k1": Call(weighted(weighted_k1), LOGS),
    "weighted_k2": Call(weighted(weighted_k2), LOGS),
    "weighted_k3": Call(weighted(weighted_k3), LOGS),
    "log_softmax": Call(log_softmax, LOGITS[:1]),
    "entropy": Call(lambda z: kb.entropy(logits=z), LOGITS[:1]),
    "exact": Call(lambda z, y: kb.exact(logits_p=z, logits_q=y), LOGITS),
    "exact of log-probs": Call(
        lambda z, y: kb.exact(log_probs_p=log_softmax(z), log_probs_q=log_softmax(y)), LOGITS
    ),
    "gaussian kl": Call(normals(gaussian.kl, "std"), NORMALS),
    "gaussian chi2": Call(normals(gaussian.chi2, "std"), NORMALS),
    "gaussian overlap": Call(normals(partial(gaussian.log_overlap, 0.3), "std"), NORMALS),
    "gaussian full kl": Call(normals(multivariate_gaussian.kl, "cov"), COVARIANCES),
    "log_q_over_p": Call(
        lambda p, q: kb.log_q_over_p(log_p=p, log_q=q, mask=q > -1.2), LOGS[:2]
    ),
    "pooled": Call(pooled, (LOG_R,)),
    **{
        f"top-k {form}": Call(partly_exact(form), LOGITS)
        for form in ("plain", "conditional", "tail_control", "lower_bound", "centre",
                     "biased_head_renormalized")
    },
    **{f"totals at {level}": Call(padded(level), LOGITS) for level in LEVELS},
    **{
        f"divergence {kind} {order}": Call(partial(kb.divergence, kind=kind, order=order), ROWS)
        for kind, order in [
            ("kl", None), ("js", None), ("chi2", None), ("tv", None), ("hellinger", None),
            ("alpha", 0.0), ("alpha", 0.5), ("alpha", 1.0), ("alpha", -1.0), ("alpha", 2.0),
            ("renyi", 0.0), ("renyi", 0.5), ("renyi", 1.0), ("renyi", 2.0), ("renyi", INF),
        ]
    },
}  # fmt: skip
# The rows of these cannot move freely: their gradient is taken along the simplex.
ON_SIMPLEX = [name for name in CALLS if name.startswith("divergence")]
calls = pytest.mark.parametrize("name", CALLS)


def values(found: Any) -> Any:
    return to_numpy(found, "found").astype(np.float64)


def near(found: Any, expected: Any, rtol: float = 1e-12) -> None:
    assert np.allclose(values(found), values(expected), rtol=rtol, atol=1e-15)


@calls
def test_the_values_are_those_of_numpy_in_one_graph_and_without(name: str, traceable) -> None:
    function, arrays = CALLS[name]
    expected = function(*map(np.array, arrays))
    given = [traceable.array(one) for one in arrays]
    near(function(*given), expected)
    near(traceable.traced(function)(*given), expected)


@calls
def test_vmap_gives_what_a_loop_gives(name: str, traceable) -> None:
    function, arrays = CALLS[name]
    both = [[one, (0.9 * np.array(one) if name not in ON_SIMPLEX else one)] for one in arrays]
    if name == "gaussian full kl":
        both = [[one, one] for one in arrays]
    loop = [function(*(np.array(one[i]) for one in both)) for i in range(2)]
    batched = traceable.in_one_piece(traceable.batched(function))
    near(batched(*(traceable.array(one) for one in both)), loop)


@calls
def test_the_gradient_is_the_slope(name: str, traceable) -> None:
    function, arrays = CALLS[name]
    given = [np.array(one) for one in arrays]
    rng = np.random.default_rng(0)
    ways = [rng.normal(size=one.shape) for one in given]
    if name in ON_SIMPLEX:
        ways = [way - way.mean(axis=-1, keepdims=True) for way in ways]
    if name == "gaussian full kl":
        ways = [way if way.ndim == 1 else way + way.T for way in ways]
    step = 1e-6

    def along(t: float) -> Any:
        return np.sum(function(*(x + t * way for x, way in zip(given, ways, strict=True))))

    everything = tuple(range(len(given)))
    of_sum = traceable.gradient(lambda *x: function(*x).sum(), everything)
    gradients = traceable.in_one_piece(of_sum)(*(traceable.array(x) for x in given))
    slope = sum(np.sum(values(g) * way) for g, way in zip(gradients, ways, strict=True))
    assert slope == pytest.approx((along(step) - along(-step)) / (2 * step), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", ["k3", "weighted_k3", "exact", "pooled", "totals at token_mean"])
def test_the_gradient_is_the_same_in_one_graph(name: str, traceable) -> None:
    function, arrays = CALLS[name]
    of_sum = traceable.gradient(lambda *x: function(*x).sum())
    given = [traceable.array(x) for x in arrays]
    near(traceable.traced(of_sum)(*given)[0], of_sum(*given)[0])


@calls
def test_half_precision_is_computed_as_float32(name: str, traceable) -> None:
    function, arrays = CALLS[name]
    half = [traceable.array(one, "bfloat16") for one in arrays]
    wide = [traceable.array(values(one), "float32") for one in half]
    if name in ON_SIMPLEX:
        # In float32 the rounded rows would be refused: their sums are off by more than it allows.
        assert np.isfinite(values(traceable.in_one_piece(function)(*half))).all()
        return
    function = traceable.in_one_piece(function)
    found = function(*half)
    assert str(found.dtype).removeprefix("torch.") in ("float32", "float64")
    assert np.array_equal(values(found), values(function(*wide)))


def test_jax_without_float64_keeps_to_float32() -> None:
    jax = pytest.importorskip("jax")
    for name, (function, arrays) in CALLS.items():
        found = jax.jit(function)(*(jax.numpy.array(one) for one in arrays))
        assert found.dtype == np.float32, name
        assert np.allclose(found, function(*map(np.array, arrays)), rtol=2e-5, atol=1e-6), name


JUNK = [-INF, np.nan, 1e30, -1e30, INF, 200.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "formula", [kb.k1, kb.k2, kb.k3, partial(kb.k_lambda, lam=0.5), kb.other_direction]
)
def test_what_is_masked_reaches_neither_value_nor_gradient(
    formula, level: str, dtype: str, traceable
) -> None:
    mask = traceable.array([[1, 1, 0, 0], [1, 0, 0, 0]], "int32")

    def mean(log_p: Any, log_q: Any) -> Any:
        log_r = kb.log_q_over_p(log_p=log_p, log_q=log_q, mask=mask)
        return kb.totals(formula(log_r), mask=mask).at(level)

    def both(junk_p: float, junk_q: float) -> Any:
        p = [[-1.0, -0.5, junk_p, junk_p], [-2.0, junk_p, junk_p, junk_p]]
        q = [[-0.5, -0.7, junk_q, junk_q], [-2.1, junk_q, junk_q, junk_q]]
        arrays = traceable.array(p, dtype), traceable.array(q, dtype)
        return mean(*arrays), *slopes(*arrays)

    slopes = traceable.in_one_piece(traceable.gradient(mean, (0, 1)))
    clean = both(0.0, 0.0)
    assert all(np.isfinite(values(one)).all() for one in clean)
    for junk_p, junk_q in zip(JUNK, reversed(JUNK), strict=True):
        for found, expected in zip(both(junk_p, junk_q), clean, strict=True):
            assert np.array_equal(values(found), values(expected))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_at_the_edges_is_the_limit_and_never_nan(dtype: str, traceable) -> None:
    edges = [-INF, -1e30, 0.0, 50.0, 100.0, 1e30, INF]
    limits = {
        kb.k1: [-1.0] * 7,
        kb.k2: edges,
        kb.k3: [-1.0, -1.0, 0.0, *np.expm1([50.0, 100.0]), INF, INF],
        partial(kb.k_lambda, lam=0.0): [-1.0] * 7,
        partial(kb.k_lambda, lam=0.5): [-1, -1, -0.5, *(np.exp([50.0, 100.0]) / 2 - 1), INF, INF],
        kb.other_direction: [0.0, 0.0, 0.0, 50 * np.exp(50), 100 * np.exp(100.0), INF, INF],
    }
    biggest = np.finfo(dtype).max
    for formula, expected in limits.items():
        slope = traceable.batched(lambda x, f=formula: traceable.gradient(f)(x)[0])
        found = values(slope(traceable.array(edges, dtype)))
        limit = np.array(expected)
        limit[limit > biggest], limit[limit < -biggest] = INF, -INF
        assert np.allclose(found, limit, rtol=1e-5, atol=1e-6), formula


def test_the_slope_of_k_lambda_in_lam_is_the_control(traceable) -> None:
    of_lam = traceable.gradient(lambda lam: kb.k_lambda(traceable.array(0.7), lam))
    for lam in (0.0, 0.4, 1.0):
        assert values(of_lam(traceable.array(lam))[0]) == pytest.approx(np.expm1(0.7), rel=1e-14)


@pytest.mark.parametrize("formula", [weighted_k1, weighted_k2, weighted_k3])
def test_weighted_slopes_stay_finite_where_a_side_has_no_mass(formula, traceable) -> None:
    p = traceable.array([-INF, -INF, -1.0, -800.0, -1.0])
    q = traceable.array([-1.0, -INF, -1.0, -1.0, -400.0])
    s = traceable.array([-1.0, -1.0, -1.0, -1.0, -2.0])
    slopes = traceable.gradient(lambda p, q: weighted(formula)(p, q, s).sum(), (0, 1))(p, q)
    assert all(np.isfinite(values(one)).all() for one in slopes)


def test_the_weighted_slope_at_equal_policies_is_not_lost(traceable) -> None:
    # d(w k1)/d log p = w (k1 + 1): at the first step of training k1 is 0 and the slope is not.
    s = traceable.array([-1.5, -2.0])
    equal = traceable.array([-1.0, -2.5])
    slope = traceable.gradient(lambda p: weighted(weighted_k1)(p, equal, s).sum())(equal)[0]
    near(slope, np.exp([0.5, -0.5]))


def test_masked_logits_have_a_slope_of_zero(traceable) -> None:
    p = traceable.array([[0.3, -INF, 2.0, -1e30]])
    q = traceable.array([[0.1, -INF, 1.0, -1e30]])
    slopes = traceable.gradient(lambda z, y: kb.exact(logits_p=z, logits_q=y).sum(), (0, 1))(p, q)
    for slope in map(values, slopes):
        assert np.isfinite(slope).all()
        assert slope[0, [1, 3]].tolist() == [0, 0]


@pytest.mark.parametrize("name", ON_SIMPLEX)
def test_categories_that_neither_side_has_have_a_slope_of_zero(name: str, traceable) -> None:
    function, (p, q) = CALLS[name]
    wider = [traceable.array(np.pad(one, ((0, 0), (0, 2)))) for one in (p, q)]
    near(function(*wider), function(np.array(p), np.array(q)))
    for slope in traceable.gradient(lambda a, b: function(a, b).sum(), (0, 1))(*wider):
        assert np.isfinite(values(slope)).all()
        assert (values(slope)[:, 3:] == 0).all()


def test_what_numpy_refuses_is_nan(traceable) -> None:
    bad = traceable.array([[0.5, 0.6], [0.5, 0.5]])
    assert np.isnan(values(kb.divergence(bad, bad))).tolist() == [True, False]
    assert np.isnan(values(kb.exact(log_probs_p=bad, log_probs_q=bad))).all()
    ones = traceable.array([1.0, -1.0])
    assert np.isnan(values(gaussian.kl(mean_p=ones, std_p=ones, mean_q=ones, std_q=ones)))[1]
    weights = traceable.array([[0.5, 1.0]])
    assert np.isnan(values(kb.totals(weights, mask=weights).at("token_mean")))
    lengths = traceable.array([1, 2], "int32")  # a list is looked at: tests/test_levels.py
    assert np.isnan(values(kb.totals(weights[0], lengths=lengths).at("token_mean")))


def test_one_token_more_in_a_batch_is_one_more_in_the_sum_in_float32(traceable) -> None:
    many = traceable.array(np.full((300, 1000), 0.1), "float32")
    assert values(kb.totals(many).total) == pytest.approx(
        300_000 * float(np.float32(0.1)), rel=1e-12
    )


@pytest.mark.parametrize("name", CLAIMS)
def test_autodiff_gives_the_claimed_expected_gradient(name: str, traceable) -> None:
    """What a trainer's own backward pass makes of each formula, over every outcome of a world."""
    claim = CLAIMS[name]
    for w in WORLDS[:3]:
        drawn = w.p if claim.sampler == "p" else w.s
        log_q, log_drawn = traceable.array(np.log(w.q)), traceable.array(np.log(drawn))
        weight = traceable.array(drawn)

        def mean(logits: Any, q: Any = log_q, s: Any = log_drawn, weight: Any = weight) -> Any:
            return (weight * ESTIMATORS[name](log_softmax(logits), q, s)).sum()

        (slope,) = traceable.gradient(mean)(traceable.array(np.log(w.p)))
        near(slope, gradient_of(claim.expected_gradient, w), rtol=1e-10)
