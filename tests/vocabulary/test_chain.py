from __future__ import annotations

import functools
import itertools

import pytest

import kullback as kb
from kullback.vocabulary.chain import Part
from kullback.vocabulary.sums import six_sums, workspace

torch = pytest.importorskip("torch")

INF = float("inf")


def part(p, q):
    return Part(*six_sums(p, q, workspace(p.shape[0], p.shape[1], p)))


def joined(p, q, cuts):
    ends = [0, *cuts, p.shape[1]]
    parts = [part(p[:, i:j], q[:, i:j]) for i, j in itertools.pairwise(ends)]
    return functools.reduce(Part.joined, parts)


def pair(seed, apart=1.0):
    made = torch.Generator().manual_seed(seed)
    p = 4 * torch.randn(5, 60, generator=made, dtype=torch.float64)
    return p, p + apart * torch.randn(5, 60, generator=made, dtype=torch.float64)


@pytest.mark.parametrize("cuts", [[30], [1], [59], [7, 8, 41], list(range(1, 60))])
@pytest.mark.parametrize("apart", [1e-5, 1.0, 20.0])
def test_parts_make_the_whole(cuts, apart):
    p, q = pair(len(cuts), apart)
    found, truth = joined(p, q, cuts), part(p, q)
    torch.testing.assert_close(found.log_z_p, truth.log_z_p, rtol=1e-14, atol=0)
    # JS is not among them.
    torch.testing.assert_close(found.sums[:, :5], truth.sums[:, :5], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("cuts", [[30], [10, 20, 45]])
def test_parts_that_a_side_has_nothing_of(cuts):
    p, q = pair(0)
    p[0, :30] = q[0, :30] = -INF
    p[1, :30], q[2, 30:] = -INF, -INF
    p[3, 2:] = -INF
    p[4, 0] = float("nan")
    found, truth = joined(p, q, cuts).sums[:, :5], part(p, q).sums[:, :5]
    torch.testing.assert_close(found[:4], truth[:4], rtol=1e-12, atol=1e-14)
    assert found[4, :2].isnan().all()


def test_the_order_of_parts_does_not_matter():
    p, q = pair(3)
    a, b, c = (part(p[:, i : i + 20], q[:, i : i + 20]) for i in (0, 20, 40))
    torch.testing.assert_close(a.joined(b).joined(c).sums, c.joined(b.joined(a)).sums)


def test_nothing_cancels_between_equal_masses():
    p = torch.zeros(1, 2, dtype=torch.float64)
    both = part(p, p).joined(part(p, p))
    assert both.sums[0, [0, 1, 4]].tolist() == [0.0, 0.0, 0.0]
    torch.testing.assert_close(
        both.sums[0, 2],
        kb.entropy(log_probs=(p[0, :1] - 4.0).log_softmax(-1)) + 2 * p.new_tensor(2.0).log(),
    )
