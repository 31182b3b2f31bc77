"""One side of a pair: hidden states and the head that makes logits of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from kullback.vocabulary.scaling import Scaling
from kullback.vocabulary.whole import on_one_device


class Head(NamedTuple):
    """One side: logits = hidden @ weight.T + bias.

    Attributes:
        hidden: [tokens, width].
        weight: [vocabulary, width].
        bias: [vocabulary], or None.
    """

    hidden: Any
    weight: Any
    bias: Any

    def of(self, part: slice) -> Head:
        """The same head over a part of the tokens."""
        return Head(self.hidden[part], self.weight, self.bias)

    def logits(self, part: slice, scale: Scaling, out: Any) -> Any:
        """Scaled logits of a part of the vocabulary, written to out, [tokens, categories]."""
        import torch

        weight = self.weight[part].T
        if self.hidden.dtype == out.dtype:
            torch.mm(self.hidden, weight, out=out)
        else:
            out.copy_(self.hidden @ weight)
        if self.bias is not None:
            out.add_(self.bias[part])
        return scale.in_place(out)

    def is_that_of(self, other: Head) -> bool:
        """Whether both sides have one head, so that one product serves them."""

        def place(x: Any) -> Any:
            return None if x is None else (x.data_ptr(), x.shape, x.stride(), x.dtype)

        return all(place(a) == place(b) for a, b in zip(self[1:], other[1:], strict=True))


def heads(
    *, names: tuple[str, str], hidden: tuple[Any, Any], weight: tuple[Any, Any], bias: Any
) -> tuple[Head, Head]:
    """Both sides, detached, with flat tokens.

    Args:
        names: what the sides are called, for errors: "p" and "q".
        hidden: [..., width] of each side.
        weight: [vocabulary, width] of each side.
        bias: [vocabulary] or None, of each side.

    Raises:
        TypeError: what is no floating tensor of torch.
        ValueError: shapes, dtypes or devices that do not fit.
    """
    for side, *tensors in zip(names, hidden, weight, bias, strict=True):
        _check(side, *tensors)
    on_one_device("both sides", *hidden)
    if hidden[0].shape[:-1] != hidden[1].shape[:-1] or len(weight[0]) != len(weight[1]):
        raise ValueError(
            f"{names[0]} has hidden states {tuple(hidden[0].shape)} and a head "
            f"{tuple(weight[0].shape)}, {names[1]} {tuple(hidden[1].shape)} and "
            f"{tuple(weight[1].shape)}, expected the same tokens and the same vocabulary"
        )
    left, right = (
        Head(h.detach().reshape(-1, h.shape[-1]), w.detach(), None if b is None else b.detach())
        for h, w, b in zip(hidden, weight, bias, strict=True)
    )
    return left, right


def _check(side: str, hidden: Any, weight: Any, bias: Any) -> None:
    named = {f"hidden_{side}": hidden, f"head_{side}": weight}
    if bias is not None:
        named[f"bias_{side}"] = bias
    for name, value in named.items():
        if not type(value).__module__.startswith("torch"):
            raise TypeError(
                f"{name} is of type {type(value).__name__}, expected a tensor of torch; make "
                "logits of some rows at a time and use whole_vocabulary"
            )
    on_one_device(f"hidden states and head of {side}", *named.values())
    shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in named.items())
    fits = hidden.ndim >= 1 and weight.ndim == 2 and len(weight) > 0
    fits = fits and hidden.shape[-1] == weight.shape[1]
    if not fits or (bias is not None and bias.shape != weight.shape[:1]):
        raise ValueError(
            f"{shapes} do not fit, expected hidden states [..., width], a head [vocabulary, width] "
            "and a bias [vocabulary]"
        )
    if hidden.dtype != weight.dtype:
        raise ValueError(
            f"hidden_{side} is {hidden.dtype} and head_{side} {weight.dtype}, expected one dtype; "
            "cast one of them"
        )
