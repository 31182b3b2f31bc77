from __future__ import annotations

import pytest

import kullback as kb
from kullback.vocabulary.slopes import kl_and_slope
from kullback.vocabulary.sums import workspace

torch = pytest.importorskip("torch")

INF = float("inf")


def pair(dtype=torch.float64, apart=1.0):
    made = torch.Generator().manual_seed(0)
    p = 3 * torch.randn(4, 300, generator=made, dtype=torch.float64)
    q = p + apart * torch.randn(4, 300, generator=made, dtype=torch.float64)
    return p.to(dtype), q.to(dtype)


def by_autograd(p, q, slope_in):
    p, q = p.double().clone(), q.double().clone()
    learned = (p if slope_in == "p" else q).requires_grad_()
    kl = kb.exact(logits_p=p, logits_q=q)
    (slope,) = torch.autograd.grad(kl.sum(), learned)
    return kl.detach(), slope


@pytest.mark.parametrize("slope_in", ["p", "q"])
@pytest.mark.parametrize("apart", [1e-3, 1.0, 60.0])
@pytest.mark.parametrize(("dtype", "near"), [(torch.float64, 1e-12), (torch.float32, 3e-6)])
def test_value_and_derivative(slope_in, apart, dtype, near):
    p, q = pair(dtype, apart)
    kl, slope = by_autograd(p, q, slope_in)
    other = (q if slope_in == "p" else p).clone()
    found = kl_and_slope(p, q, workspace(9, 300, p), slope_in=slope_in)
    torch.testing.assert_close(found, kl, rtol=10 * near, atol=near * 1e-3)
    written, untouched = (p, q) if slope_in == "p" else (q, p)
    assert torch.equal(untouched, other)
    error = (written.double() - slope).norm() / slope.norm()
    assert error < 10 * near


@pytest.mark.parametrize("slope_in", ["p", "q"])
def test_what_neither_side_can_have_has_no_slope(slope_in):
    p, q = pair()
    p[:, :100] = q[:, :100] = -INF
    kl, slope = by_autograd(p[:, 100:], q[:, 100:], slope_in)
    found = kl_and_slope(p, q, workspace(4, 300, p), slope_in=slope_in)
    written = p if slope_in == "p" else q
    torch.testing.assert_close(found, kl)
    torch.testing.assert_close(written[:, 100:], slope)
    assert (written[:, :100] == 0).all()


def test_what_only_the_teacher_can_have():
    p, q = pair()
    p[:, 7] = -INF
    kl = kl_and_slope(p, q, workspace(4, 300, p), slope_in="p")
    assert kl.isfinite().all()
    assert (p[:, 7] == 0).all()
    assert p.isfinite().all()


def test_value_alone():
    p, q = pair()
    kept = p.clone(), q.clone()
    found = kl_and_slope(p, q, workspace(4, 300, p), slope_in="")
    torch.testing.assert_close(found, kb.exact(logits_p=p, logits_q=q))
    assert torch.equal(p, kept[0])
    assert torch.equal(q, kept[1])
