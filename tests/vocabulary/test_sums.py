from __future__ import annotations

import math

import pytest

import kullback as kb
from kullback.vocabulary.sums import (
    k3_by,
    log_normalizers,
    log_ratio,
    six_sums,
    terms_with_care,
    where_defined,
    workspace,
)

torch = pytest.importorskip("torch")

INF = float("inf")


def pair(rows=3, categories=500, dtype=torch.float64):
    made = torch.Generator().manual_seed(0)
    p = 3 * torch.randn(rows, categories, generator=made, dtype=dtype)
    return p, p + torch.randn(rows, categories, generator=made, dtype=dtype)


def test_pieces_add_up_to_the_whole():
    p, q = pair()
    q[1, 3], p[2, 400] = -INF, -90.0  # odd ones, in different pieces
    log_z_p, log_z_q, whole = six_sums(p, q, workspace(3, 500, p))
    torch.testing.assert_close(log_z_p, p.logsumexp(-1), rtol=1e-14, atol=0)
    room = workspace(5, 200, p)  # more rows than are needed
    parts = [
        six_sums(
            p[:, i : i + 200], q[:, i : i + 200], room[..., : min(200, 500 - i)], log_z_p, log_z_q
        )
        for i in range(0, 500, 200)
    ]
    torch.testing.assert_close(sum(part[2] for part in parts), whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("dtype", "ulps"), [(torch.float64, 64), (torch.float32, 64)])
def test_k3_without_cancellation_is_k3(dtype, ulps):
    sizes = torch.logspace(-12, 1.4, 20_001, dtype=dtype)
    x = torch.cat([sizes, -sizes, -50 * sizes[:3], torch.zeros(1, dtype=dtype)])
    found = k3_by(x.expm1(), x, *torch.empty(3, len(x), dtype=dtype))
    truth = kb.k3(x.double())
    assert (found >= 0).all()
    assert ((found - truth).abs() <= ulps * torch.finfo(dtype).eps * truth).all()


def test_without_js_the_rest_is_the_same():
    p, q = pair()
    q[0, 0] = -300.0
    room = workspace(3, 500, p)
    with_js, without = (six_sums(p, q, room, js=js)[2] for js in (True, False))
    assert torch.equal(with_js[1:, :5], without[1:, :5])
    assert (without[1:, 5] == 0).all()


def test_normalizers_of_a_row_without_possible_categories():
    z = torch.tensor([[-INF, -INF], [0.0, -INF]])
    log_z = log_normalizers(z, torch.empty_like(z))
    assert log_z.tolist() == [-INF, 0.0]


def test_a_common_offset_rounds_nothing_away():
    p = torch.randn(1, 1000, generator=torch.Generator().manual_seed(0))
    q = (p + 1e-3) + 200  # what is left of the thousandth is in q itself
    log_z = [one.double().logsumexp(-1) for one in (p, q)]
    x = torch.empty_like(p)
    assert log_ratio(p, q, log_z[0], log_z[1], x)
    truth = (q.double() - log_z[1]) - (p.double() - log_z[0])
    torch.testing.assert_close(x.double(), truth, rtol=0, atol=1e-9)


def test_terms_with_care_are_those_of_the_formulas():
    p, q = (one.log_softmax(-1) for one in pair())
    found = terms_with_care(p, q).sum(-2)
    torch.testing.assert_close(found[:, 0], kb.exact(log_probs_p=p, log_probs_q=q))
    torch.testing.assert_close(found[:, 1], kb.exact(log_probs_p=q, log_probs_q=p))
    torch.testing.assert_close(found[:, 2], kb.entropy(log_probs=p))
    torch.testing.assert_close(found[:, 3], kb.entropy(log_probs=q))
    torch.testing.assert_close(found[:, 4], kb.divergence(q.exp(), p.exp(), "chi2"))
    torch.testing.assert_close(found[:, 5], kb.divergence(p.exp(), q.exp(), "js"))


def test_terms_of_what_a_side_cannot_have():
    p = torch.tensor([-INF, -INF, 0.0], dtype=torch.float64)
    q = torch.tensor([-INF, 0.0, -INF], dtype=torch.float64)
    neither, only_q, only_p = terms_with_care(p, q)
    half = 0.5 * math.log(2.0)
    assert neither.tolist() == [0.0] * 6
    assert only_q.tolist() == pytest.approx([1.0, INF, 0.0, 0.0, INF, half])
    assert only_p.tolist() == pytest.approx([INF, 1.0, 0.0, 0.0, 1.0, half])


def test_nothing_is_said_of_a_row_that_is_none():
    log_z = torch.tensor([-INF, 0.0])
    told = where_defined(log_z, torch.zeros(2), torch.zeros(2, 6))
    assert told.isnan().tolist() == [[True, True, True, False, True, True], [False] * 6]
