"""From derivatives in logits to those in hidden states, head and bias, chunk after chunk."""

from __future__ import annotations

from typing import Any

from kullback.vocabulary.head import Head


class Gradients:
    """Sums over chunks, in float32 at least; of half precision the last step rounds."""

    def __init__(self, student: Head, wanted: tuple[bool, ...], dtype: Any) -> None:
        hidden, head, bias = student
        self._student, self._started = student, False
        self._hidden = hidden.new_empty(hidden.shape) if wanted[0] else None
        # The first chunk writes the head's, the others add: it is too large to be cleared first.
        self._head = head.new_empty(head.shape, dtype=dtype) if wanted[1] else None
        self._bias = bias.new_zeros(bias.shape, dtype=dtype) if wanted[2] else None

    def add(self, part: slice, slope: Any) -> None:
        """Take the derivative in the logits of a chunk on to what made them."""
        import torch

        hidden, head, _ = self._student.of(part)
        if self._bias is not None:
            self._bias.add_(slope.sum(0))
        slope = slope.to(head.dtype)
        if self._hidden is not None:
            torch.mm(slope, head, out=self._hidden[part])
        if self._head is None:
            return
        if head.dtype != self._head.dtype:
            product = slope.T @ hidden
            self._head = self._head.add_(product) if self._started else self._head.copy_(product)
        elif self._started:
            self._head.addmm_(slope.T, hidden)
        else:
            torch.mm(slope.T, hidden, out=self._head)
        self._started = True

    @property
    def found(self) -> tuple[Any, Any, Any]:
        """The three gradients in the dtypes of what they are of; None for what is not wanted."""
        _, head, bias = self._student
        if self._head is not None and not self._started:
            self._head.zero_()
        return (
            self._hidden,
            None if self._head is None else self._head.to(head.dtype),
            None if self._bias is None else self._bias.to(bias.dtype),
        )
