"""A KL between student and teacher as a loss on hidden states and heads, without all the logits."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from kullback.vocabulary.gradients import Gradients
from kullback.vocabulary.head import Head, heads
from kullback.vocabulary.pieces import piece_rows
from kullback.vocabulary.scaling import Scaling, scaling
from kullback.vocabulary.slopes import kl_and_slope
from kullback.vocabulary.sums import workspace

_DIRECTIONS = {"KL(student||teacher)": True, "KL(teacher||student)": False}


class HeadKL(NamedTuple):
    """A loss with a gradient, and the KL of each token to read.

    Attributes:
        loss: the weighted sum of the KLs; its gradient reaches the student's hidden states, head
            and bias.
        kl: [...] nats of each token, without a gradient; NaN where the weight is 0.

    Example:
        >>> HeadKL(loss=0.1, kl=[0.05, 0.15]).loss
        0.1
    """

    loss: Any
    kl: Any


class _Plan(NamedTuple):
    """What the loss is, but for its tensors."""

    student_first: bool
    scale: Scaling
    wanted: tuple[bool, ...]  # gradients of hidden states, head and bias


def head_kl(
    *,
    hidden_student: Any,
    head_student: Any,
    hidden_teacher: Any,
    head_teacher: Any,
    bias_student: Any = None,
    bias_teacher: Any = None,
    direction: str = "KL(student||teacher)",
    weights: Any = None,
    temperature: float = 1.0,
    soft_cap: float | None = None,
) -> HeadKL:
    """An exact KL between student and teacher to train on, from hidden states and heads.

    loss = sum over tokens of weight * KL(student||teacher)

    Exact and never negative. Its gradient is that of this sum, at these prefixes: it reaches
    the student's hidden states, head and bias; the teacher is a constant, and so is what the
    student sampled. In a policy gradient this is the token's part of the gradient of the KL of
    sequences, not all of it.

    The derivative in the logits, p (log p/q - KL) or q - p, is written down in the forward pass,
    some tokens at a time, and taken on to the head there. So the weights of the tokens have to be
    known in advance, and memory beyond the gradient itself is a quarter of the head in float32.
    In half precision the logits are rounded as the products give them; all after them, and sums
    over tokens, are in float32. A second backward through one loss (retain_graph=True) does the
    work anew. No second derivatives, no torch.compile. torch only, on any device.

    Args:
        hidden_student: [..., width] last hidden states of the student.
        head_student: [vocabulary, width] weights that make logits of them.
        hidden_teacher: [..., width of the teacher] of the teacher, at the same tokens.
        head_teacher: [vocabulary, width of the teacher] its weights, over the same vocabulary.
        bias_student: [vocabulary], where the head has one.
        bias_teacher: the same of the teacher.
        direction: "KL(student||teacher)" or "KL(teacher||student)".
        weights: [...] what the KL of each token counts, for a mean over a mask
            ``mask / mask.sum()``; None for the mean over all tokens. Tokens of weight 0 are left
            out before anything is computed of them.
        temperature: what the logits of both are divided by, last. The loss is not multiplied by
            its square.
        soft_cap: logits become cap * tanh(logits / cap) first, as in Gemma 2.

    Returns:
        A `HeadKL`: the loss, and the KL of each token.

    Raises:
        TypeError: for what is no floating tensor of torch.
        ValueError: for another direction, for shapes or devices that do not fit, or for a
            temperature or cap that is not above 0.

    Example:
        >>> head_kl(hidden_student=1, head_student=1, hidden_teacher=1, head_teacher=1)
        Traceback (most recent call last):
        TypeError: hidden_student is of type int, expected a tensor of torch; make logits of some
        rows at a time and use whole_vocabulary
    """
    first = _DIRECTIONS.get(direction.replace("‖", "||").replace(" ", ""))
    if first is None:
        raise ValueError(f"direction is {direction!r}, expected one of {', '.join(_DIRECTIONS)}")
    scale = scaling(temperature, soft_cap)
    student, teacher = heads(
        names=("student", "teacher"),
        hidden=(hidden_student, hidden_teacher),
        weight=(head_student, head_teacher),
        bias=(bias_student, bias_teacher),
    )
    weight, kept = _kept(student.hidden, hidden_student.shape[:-1], weights)
    learned = (hidden_student.reshape(student.hidden.shape), head_student, bias_student)
    if kept is not None:
        learned = (learned[0][kept], *learned[1:])
        student, teacher = student.of(kept), teacher.of(kept)
    wanted = tuple(_needs_gradient(one) for one in learned)
    plan = _Plan(first, scale, wanted)
    loss, kl = _function().apply(student, teacher, weight, plan, *learned)
    if kept is not None:
        kl = kl.new_full(kept.shape, float("nan")).masked_scatter_(kept, kl)
    return HeadKL(loss, kl.reshape(hidden_student.shape[:-1]))


def _needs_gradient(one: Any) -> bool:
    import torch

    return one is not None and one.requires_grad and torch.is_grad_enabled()


def _kept(hidden: Any, tokens: Any, weights: Any) -> tuple[Any, Any]:
    """The weights that are not 0, flat, and where they are; None where that is everywhere."""
    import torch

    dtype = torch.promote_types(hidden.dtype, torch.float32)
    if weights is None:
        return hidden.new_full((len(hidden),), 1.0 / max(1, len(hidden)), dtype=dtype), None
    given = torch.as_tensor(weights, device=hidden.device).detach()
    if given.shape != tokens:
        raise ValueError(
            f"weights have the shape {tuple(given.shape)}, expected one for each token, "
            f"{tuple(tokens)}; for the mean over a mask give mask / mask.sum()"
        )
    flat = given.reshape(-1).to(dtype)
    kept = flat != 0
    return (flat, None) if kept.all() else (flat[kept], kept)


@cache
def _function() -> Any:
    """The autograd function: a class that cannot be made before torch is there."""
    import torch

    class WrittenDown(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            *work, _, _, _ = given
            kl, ctx.gradients = _work(*work)
            ctx.work = work
            ctx.save_for_backward(*(one for one in given[4:] if one is not None))
            ctx.mark_non_differentiable(kl)
            return (work[2] * kl).sum(), kl

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *slopes: Any) -> Any:  # type: ignore[override]
            # Handed over and not kept, so that nobody has to copy them.
            gradients, ctx.gradients = ctx.gradients, None
            if gradients is None:
                _ = ctx.saved_tensors  # an error if somebody has changed them since
                gradients = _work(*ctx.work)[1]
            scaled = (None if one is None else one.mul_(slopes[0]) for one in gradients)
            return None, None, None, None, *scaled

    return WrittenDown


def _work(student: Head, teacher: Head, weight: Any, plan: _Plan) -> tuple[Any, Any]:
    """The KL of each token, and the gradients of their weighted sum that are wanted."""
    import torch

    (tokens, width), vocabulary = student.hidden.shape, len(student.weight)
    # Two arrays of logits, together a quarter of the head, and all chunks about as long.
    chunks = max(1, -(-tokens // max(16, width // 8)))
    step = max(1, -(-tokens // chunks))
    rows = min(step, piece_rows(weight, vocabulary))
    logits = weight.new_empty((2, step, vocabulary))
    room = workspace(rows, vocabulary, weight)
    kl = torch.empty_like(weight)
    gradients = Gradients(student, plan.wanted, weight.dtype)
    with torch.no_grad():
        for i in range(0, tokens, step):
            some = slice(i, min(i + step, tokens))
            own, other = logits[:, : some.stop - i]
            student.of(some).logits(slice(None), plan.scale, own)
            teacher.of(some).logits(slice(None), plan.scale, other)
            for j in range(0, len(own), rows):
                few = slice(j, j + rows)
                kl[some][few] = _slope(own[few], other[few], weight[some][few], room, plan)
            gradients.add(some, own)
    return kl, gradients.found


def _slope(own: Any, other: Any, weight: Any, room: Any, plan: _Plan) -> Any:
    """The KL of each row; the student's logits become the derivative of its share of the loss."""
    if not any(plan.wanted):
        learned, factor = "", 1.0
    else:
        learned, factor = "p" if plan.student_first else "q", plan.scale.slope(own)
    p, q = (own, other) if plan.student_first else (other, own)
    kl = kl_and_slope(p, q, room, slope_in=learned)
    if learned:
        own.mul_(weight[:, None] * factor)
    return kl
