"""The right losses keep every law, and each wrong one breaks the law that it is said to break."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .distill_twins import JSD, KL, LISTS
from .plain import VALUES, S, T

torch = pytest.importorskip("torch")

_T, _S = (torch.tensor(np.log(rows)) for rows in (T, S))
_W = 0.3


def value_is_its_names(loss: Callable[..., Any], plain: Callable[..., Any]) -> bool:
    return np.allclose(loss(_T, _S, _W).numpy(), plain(T, S, _W), rtol=1e-12, atol=1e-14)


def never_negative(loss: Callable[..., Any]) -> bool:
    noise = torch.randn(200, 50, generator=torch.Generator().manual_seed(0))
    near = noise + 1e-6 * noise.flip(0)
    return bool((loss(noise, near, 0.3) >= 0).all() and (loss(noise, noise, 0.3) >= 0).all())


def continuous_at_its_ends(loss: Callable[..., Any]) -> bool:
    pairs = ((0.0, 1e-6), (1.0, 1 - 1e-6))
    return all(bool((loss(_T, _S, a) - loss(_T, _S, b)).abs().max() < 0.02) for a, b in pairs)


def gradient_is_its_own(loss: Callable[..., Any]) -> bool:
    s, way = _S.clone().requires_grad_(), torch.linspace(-1, 2, _S.numel()).reshape(_S.shape)
    (slope,) = torch.autograd.grad(loss(_T, s, _W).sum(), s)
    there, back = (loss(_T, _S + step * way, _W).sum() for step in (1e-6, -1e-6))
    return bool(torch.isclose((slope * way).sum(), (there - back) / 2e-6, rtol=1e-6))


def teacher_is_constant(loss: Callable[..., Any]) -> bool:
    t, s = _T.clone().requires_grad_(), _S.clone().requires_grad_()
    loss(t, s, _W).sum().backward()
    return t.grad is None or bool((t.grad == 0).all())


def kept(loss: Callable[..., Any], plain: Callable[..., Any]) -> dict[str, bool]:
    return {
        "the value is its name's": value_is_its_names(loss, plain),
        "never negative": never_negative(loss),
        "continuous at its ends": continuous_at_its_ends(loss),
        "the gradient is its own": gradient_is_its_own(loss),
        "the teacher is constant": teacher_is_constant(loss),
    }


FORMULAS = {
    **dict.fromkeys(KL, VALUES["sum T log(T/S)"]),
    **dict.fromkeys(JSD, VALUES["(1 - w) KL(T||M) + w KL(S||M), M = w T + (1 - w) S"]),
}


@pytest.mark.parametrize("name", KL | JSD)
def test_the_law_that_a_loss_is_said_to_break_is_broken_and_none_by_the_right_ones(name):
    twin = (KL | JSD)[name]
    laws = kept(twin.loss, FORMULAS[name])
    broken = {law for law, holds in laws.items() if not holds}
    assert twin.breaks in broken if twin.breaks else not broken


@pytest.mark.parametrize("name", LISTS)
def test_a_list_teaches_what_stands_outside_of_it(name):
    """The student is right on the list and has ten times the teacher's mass on one rare token."""
    t = torch.tensor([0.5, 0.3, 0.1, 0.06, 0.04], dtype=torch.float64)
    ids, log_t = torch.tensor([[0, 1]]), t[:2].log()[None]
    s = torch.tensor([[0.3, 0.18, 0.02, 0.1, 0.4]], dtype=torch.float64).log().requires_grad_()
    (slope,) = torch.autograd.grad(LISTS[name].loss(ids, log_t, s).sum(), s)
    taught = bool(slope[0, 2:].sum() > 0.1)  # its mass is to fall, by 0.52 - 0.2
    exact = bool(torch.isclose(slope[0, 2:].sum(), torch.tensor(0.52 - 0.2, dtype=torch.float64)))
    assert (taught and exact) == (not LISTS[name].breaks)
