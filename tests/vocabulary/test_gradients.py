from __future__ import annotations

import pytest

from kullback.vocabulary.gradients import Gradients
from kullback.vocabulary.head import Head

torch = pytest.importorskip("torch")


def student(dtype=torch.float64):
    made = torch.Generator().manual_seed(0)
    tensors = (torch.randn(shape, generator=made).to(dtype) for shape in ((6, 4), (9, 4), (9,)))
    return Head(*tensors), torch.randn(6, 9, generator=made)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("step", [1, 4, 6])
def test_chunks_sum_to_the_gradient_of_all_tokens(dtype, step):
    head, slope = student(dtype)
    wide = torch.promote_types(dtype, torch.float32)
    slope = slope.to(wide)
    sums = Gradients(head, (True, True, True), wide)
    for i in range(0, 6, step):
        sums.add(slice(i, i + step), slope[i : i + step])
    truth = (slope @ head.weight.to(wide), slope.T @ head.hidden.to(wide), slope.sum(0))
    near = 1e-12 if dtype == torch.float64 else 3e-2
    for found, expected in zip(sums.found, truth, strict=True):
        assert found.dtype == dtype
        torch.testing.assert_close(found.to(wide), expected, rtol=near, atol=near)


@pytest.mark.parametrize(
    "wanted", [(True, False, False), (False, True, False), (False, False, True)]
)
def test_only_what_is_wanted(wanted):
    head, slope = student()
    sums = Gradients(head, wanted, torch.float64)
    sums.add(slice(0, 6), slope.double())
    assert tuple(one is not None for one in sums.found) == wanted


def test_no_tokens_no_gradient():
    head, _ = student()
    _, weight, bias = Gradients(head, (True, True, True), torch.float64).found
    assert (weight == 0).all()
    assert (bias == 0).all()
