from __future__ import annotations

import pytest

from kullback.vocabulary.head import Head, heads
from kullback.vocabulary.scaling import Scaling

torch = pytest.importorskip("torch")

H, W, B = torch.randn(2, 3, 4), torch.randn(7, 4), torch.randn(7)


def made(hidden=(H, H), weight=(W, W), bias=(None, None)):
    return heads(names=("p", "q"), hidden=hidden, weight=weight, bias=bias)


def test_tokens_are_flat_and_nothing_is_taped():
    weight = W.clone().requires_grad_()
    left, right = made(weight=(weight, W))
    assert left.hidden.shape == right.hidden.shape == (6, 4)
    assert not left.weight.requires_grad


@pytest.mark.parametrize("bias", [None, B])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_of_a_part(bias, dtype):
    head = Head(H.reshape(6, 4).to(dtype), W.to(dtype), None if bias is None else bias.to(dtype))
    out = torch.empty(2, 3)
    head.of(slice(1, 3)).logits(slice(4, 7), Scaling(2.0), out)
    truth = (head.hidden @ head.weight.T).float() + (
        0.0 if bias is None else bias.to(dtype).float()
    )
    torch.testing.assert_close(out, truth[1:3, 4:7] / 2, rtol=1e-5, atol=1e-5)


def test_one_head_or_two():
    left, right = made(weight=(W, W))
    assert left.is_that_of(right)
    assert made(bias=(B, B))[0].is_that_of(made(bias=(B, B))[1])
    for weight, bias in (((W, W.clone()), (None, None)), ((W, W), (B, None)), ((W, W), (B, B + 1))):
        left, right = made(weight=weight, bias=bias)
        assert not left.is_that_of(right)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"hidden": (H, H.numpy())}, TypeError, "hidden_q is of type ndarray, expected a tensor"),
        ({"bias": ([1.0], None)}, TypeError, "bias_p is of type list, expected a tensor of torch"),
        ({"hidden": (H, H.long())}, TypeError, "head of q of torch.int64, expected floating"),
        ({"weight": (W[:, :3], W)}, ValueError, r"head_p \(7, 3\) do not fit, expected hidden"),
        ({"weight": (W, W[0])}, ValueError, r"head_q \(4,\) do not fit"),
        ({"weight": (W[:0], W[:0])}, ValueError, r"head_p \(0, 4\) do not fit"),
        ({"bias": (None, B[:3])}, ValueError, r"bias_q \(3,\) do not fit"),
        ({"hidden": (H, H[0])}, ValueError, "expected the same tokens and the same vocabulary"),
        ({"weight": (W, W[:5])}, ValueError, "expected the same tokens and the same vocabulary"),
        (
            {"hidden": (H, H.half())},
            ValueError,
            "hidden_q is torch.float16 and head_q torch.float32",
        ),
        ({"weight": (W, W.to("meta"))}, ValueError, "head of q on cpu and on meta, expected one"),
    ],
)
def test_what_does_not_fit(given, error, said):
    with pytest.raises(error, match=said):
        made(**given)


def test_two_devices():
    with pytest.raises(ValueError, match="both sides on cpu and on meta, expected one device"):
        made(hidden=(H, H.to("meta")), weight=(W, W.to("meta")))
