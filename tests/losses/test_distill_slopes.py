"""The derivative is taken through another formula than the value: right, finite, of few arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.arrays import to_numpy
from kullback.formulas.categorical import log_softmax
from kullback.losses.distill_slopes import carried, slope, unlike
from kullback.losses.distill_terms import CLAIMS, terms

from .plain import SLOPES, VALUES, S, T, in_logits

SHARED = [name for name, claim in CLAIMS.items() if claim.at_0]
each = pytest.mark.parametrize("name", CLAIMS)


def share(name: str, of: float = 0.3) -> float | None:
    return of if name in SHARED else None


@each
def test_the_second_derivative_is_right_too(name: str, traceable) -> None:
    of, row = terms(name, share(name)), 0

    def first(z: Any) -> Any:
        total = lambda z: of(traceable.array(np.log(T[row])), log_softmax(z)).sum()  # noqa: E731
        return traceable.gradient(total)(z)[0]

    def claimed(z: Any) -> Any:
        s = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        return in_logits(SLOPES[CLAIMS[name].slope](T[row], s, 0.3), s)

    way, z = np.array([0.3, -1.0, 0.5]), np.log(S[row])
    along = traceable.gradient(lambda z: (first(z) * traceable.array(way)).sum())
    (found,) = traceable.in_one_piece(along)(traceable.array(z))
    moved = (claimed(z + 1e-6 * way) - claimed(z - 1e-6 * way)) / 2e-6
    np.testing.assert_allclose(to_numpy(found, "found"), moved, rtol=1e-6, atol=1e-9)


@each
def test_the_formula_differs_from_the_terms_by_a_constant(name: str) -> None:
    through = slope(name, share(name))
    apart = [
        through(np.log(T), np.log(s)).sum(-1) - VALUES[CLAIMS[name].value](T, s, 0.3)
        for s in (S, S[::-1], np.full_like(S, 1 / 3))
    ]
    np.testing.assert_allclose(apart[1:], apart[:1] * 2, rtol=1e-11, atol=1e-12)


@each
@pytest.mark.parametrize("of", [1e-12, 0.5, 1 - 1e-12])
def test_it_is_finite_wherever_it_is_evaluated(name: str, of: float) -> None:
    edges = np.array([0.0, -1.0, -80.0, -1e4, -1e30, -np.inf])
    log_t, log_s = np.meshgrid(edges, edges)
    assert np.isfinite(slope(name, share(name, of))(log_t, log_s)).all()


@each
def test_a_backward_pass_keeps_few_arrays_of_the_size_of_the_vocabulary(name: str) -> None:
    """Through the terms themselves it would keep 28 (KL) to 63 (jsd)."""
    torch = pytest.importorskip("torch")
    kept: dict[int, int] = {}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    student = torch.zeros(3, 5, 400, requires_grad=True)
    teacher = torch.arange(400.0).repeat(3, 5, 1)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        option: dict[str, Any] = {"order" if name == "alpha" else "weight": share(name)}
        loss = kb.distill(student_logits=student, teacher_logits=teacher, divergence=name, **option)
    assert sum(kept.values()) / student.nbytes < (9 if name in SHARED else 5)
    assert loss.requires_grad


def test_the_value_is_that_of_the_first_and_the_slope_that_of_the_second(traceable) -> None:
    both = carried(lambda t, s: 0.0 * t + 7.0, lambda t, s: t * s * s)
    t, s = traceable.array([2.0]), traceable.array([3.0])
    assert float(both(t, s)[0]) == 7.0
    found = traceable.gradient(lambda t, s: both(t, s).sum(), (0, 1))(t, s)
    assert [float(one[0]) for one in found] == [0.0, 12.0]


def test_unlike_is_what_it_says() -> None:
    x, y, a = np.array([0.1, 1e-30, 0.5]), np.array([0.3, 0.5, 1e-80]), 0.25
    plain = x - y - y * ((x / y) ** a - 1) / a
    np.testing.assert_allclose(unlike(np.log(x), np.log(y), a), plain, rtol=1e-12)
    with np.errstate(divide="ignore"):
        gone = np.log([0.0])
    np.testing.assert_allclose(unlike(gone, np.log([0.5]), a), [0.5 / a - 0.5])
    assert unlike(gone, gone, a) == 0
