"""Divergences of two policies at each token from all their logits, a few rows at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

from kullback.arrays import at_least_float32, namespace, quiet
from kullback.formulas.categorical import entropy, exact, log_softmax
from kullback.formulas.divergences import divergence
from kullback.vocabulary.pieces import Compiled, Plain, pieces
from kullback.vocabulary.scaling import Scaling, scaling
from kullback.vocabulary.sums import where_defined

_FORMULA_PIECE = 2**18  # categories times rows that NumPy and JAX take at once


class Whole(NamedTuple):
    """Divergences of two policies over all categories, one number per token, in nats.

    S = chi2 / (2 J),  J = KL(p||q) + KL(q||p)

    Exact, in float64 where the device has it, and to read: no gradient flows through them.

    Attributes:
        kl_pq: KL(p||q); infinite where q rules out a category that p has.
        kl_qp: KL(q||p); infinite where p rules out a category that q has.
        entropy_p: the entropy of p.
        entropy_q: the entropy of q.
        chi2_qp: chi2(q||p) = Var_p(q/p); infinite where p rules out a category that q has.
        js: the Jensen-Shannon divergence; None from `head_divergences` unless asked for.

    Example:
        >>> one = Whole(kl_pq=0.2, kl_qp=0.3, entropy_p=1.0, entropy_q=1.1, chi2_qp=2.0, js=0.05)
        >>> one.jeffreys, one.S
        (0.5, 2.0)
    """

    kl_pq: Any
    kl_qp: Any
    entropy_p: Any
    entropy_q: Any
    chi2_qp: Any
    js: Any

    @property
    def jeffreys(self) -> Any:
        """J = KL(p||q) + KL(q||p)."""
        return self.kl_pq + self.kl_qp

    @property
    def S(self) -> Any:  # noqa: N802 - the name it has in `Shape`
        """chi2 / (2 J): above 1 k3 of these tokens is noisier than k1; NaN where p = q."""
        return self.chi2_qp / (2 * self.jeffreys)


def whole_vocabulary(
    *,
    logits_p: Any,
    logits_q: Any,
    temperature: float = 1.0,
    soft_cap: float | None = None,
    compiled: bool | None = None,
) -> Whole:
    """KL both ways, entropies, chi-square and Jensen-Shannon of each pair of rows of logits.

    KL(p||q) = sum p (q/p - 1 - log q/p),  chi2(q||p) = sum (p - q)^2 / p,  and their kin

    Exact, never negative, without the arrays that two log-softmaxes of everything would take: a
    few rows are in work at a time. The numbers are those of `exact`, `entropy` and `divergence`;
    in float32 they agree to 2e-5 of their value, however close p and q are (entropies to 1e-5
    nats; results/vocabulary.json has what was measured). No gradient: for a loss see `head_kl`.
    `kl_pq` is what `estimate` takes as ``exact=`` where p is the policy whose prefixes these are.

    torch on any device, in half, single or double precision. On a CPU and with Numba (the extra
    ``fast``) a compiled kernel does large inputs several times faster. Arrays of NumPy and JAX go
    through the formulas a few rows at a time.

    Args:
        logits_p: [..., categories] of the policy that comes first; -inf marks a category that
            cannot occur.
        logits_q: the same of the other policy, of the same shape.
        temperature: what the logits of both are divided by.
        soft_cap: logits become cap * tanh(logits / cap) before, if they are still uncapped.
        compiled: True asks for the kernel, False for plain torch; None takes the kernel where it
            is there and the input is large enough to pay for loading it.

    Returns:
        A `Whole` of [...] numbers.

    Raises:
        TypeError: when the two sides are of different libraries, or no floating numbers.
        ValueError: when they differ in shape or device or have no category, for a temperature or
            cap that is not above 0, or for compiled=True where the kernel cannot be used.

    Example:
        >>> one = whole_vocabulary(logits_p=[0.0, 0.0], logits_q=[0.0, 2.0])
        >>> round(float(one.kl_pq), 6), round(float(one.kl_qp), 6), round(float(one.js), 6)
        (0.433781, 0.327813, 0.089541)
    """
    scale = scaling(temperature, soft_cap)
    xp = namespace(logits_p, logits_q)
    if xp.__name__ == "torch":
        same_rows(logits_p, logits_q)
        return _by_pieces(logits_p.detach(), logits_q.detach(), scale, compiled)
    if compiled:
        raise ValueError("compiled=True takes tensors of torch: give torch.from_numpy(logits)")
    p, q = at_least_float32(logits_p, xp), at_least_float32(logits_q, xp)
    same_rows(p, q)
    return _by_formula(p, q, scale, xp)


def same_rows(p: Any, q: Any) -> None:
    """Raise unless p and q are rows of logits that can be compared one by one.

    Example:
        >>> import numpy as np
        >>> same_rows(np.ones((4, 3)), np.ones((4, 3)))
    """
    if p.shape != q.shape or p.ndim == 0 or p.shape[-1] == 0:
        raise ValueError(
            f"logits_p and logits_q have the shapes {tuple(p.shape)} and {tuple(q.shape)}, "
            "expected rows over the same categories; pass both as [..., categories]"
        )
    if p.dtype.__class__.__module__ == "torch":
        on_one_device("logits", p, q)


def on_one_device(what: str, *tensors: Any) -> None:
    """Raise unless all are floating tensors of torch on one device."""
    for one in tensors:
        if not one.dtype.is_floating_point:
            raise TypeError(f"{what} of {one.dtype}, expected floating numbers; cast them first")
        if one.device != tensors[0].device:
            raise ValueError(
                f"{what} on {tensors[0].device} and on {one.device}, expected one device; move "
                "one of them"
            )


def _by_pieces(p: Any, q: Any, scale: Scaling, compiled: bool | None) -> Whole:
    import torch

    dtype = torch.promote_types(torch.promote_types(p.dtype, q.dtype), torch.float32)
    way = pieces(p.new_empty(0, dtype=dtype), p.numel(), p.shape[-1], compiled)
    with torch.no_grad():
        sums = [_sums(a, b, dtype, scale, way) for a, b in _matrices(p, q)]
    return Whole(*torch.cat(sums).reshape(*p.shape[:-1], 6).unbind(-1))


def _matrices(p: Any, q: Any) -> list[tuple[Any, Any]]:
    """Views of both as [rows, categories]; several where one would be a copy, as of z[:, :-1]."""
    try:
        return [(p.view(-1, p.shape[-1]), q.view(-1, q.shape[-1]))]
    except RuntimeError:
        if p.ndim == 2:
            return [(p, q)]
    return [pair for a, b in zip(p, q, strict=True) for pair in _matrices(a, b)]


def _sums(a: Any, b: Any, dtype: Any, scale: Scaling, way: Plain | Compiled) -> Any:
    """The six sums of each pair of rows, scaled a few rows at a time where they have to be."""
    import torch

    ready = scale.is_nothing and a.dtype == b.dtype == dtype
    ready = ready and a.is_contiguous() and b.is_contiguous()
    if ready or not len(a):
        return where_defined(*way.sums(a.to(dtype), b.to(dtype)))
    room = a.new_empty((2, min(way.rows, len(a)), a.shape[1]), dtype=dtype)
    found = []
    for i in range(0, len(a), way.rows):
        left, right = (
            scale.in_place(own[: len(one)].copy_(one))
            for one, own in zip((a[i : i + way.rows], b[i : i + way.rows]), room, strict=True)
        )
        found.append(where_defined(*way.sums(left, right)))
    return torch.cat(found)


def _by_formula(p: Any, q: Any, scale: Scaling, xp: Any) -> Whole:
    categories = p.shape[-1]
    a, b = p.reshape(-1, categories), q.reshape(-1, categories)
    step = max(1, _FORMULA_PIECE // categories)
    found = []
    for i in range(0, max(1, len(a)), step):
        log_p, log_q = (log_softmax(scale.of(one[i : i + step])) for one in (a, b))
        with quiet(xp):
            left, right = xp.exp(log_p), xp.exp(log_q)
        found.append((
            exact(log_probs_p=log_p, log_probs_q=log_q),
            exact(log_probs_p=log_q, log_probs_q=log_p),
            entropy(log_probs=log_p),
            entropy(log_probs=log_q),
            divergence(right, left, "chi2"),
            divergence(left, right, "js"),
        ))  # fmt: skip
    columns = zip(*found, strict=True)
    return Whole(*(xp.concatenate(column).reshape(p.shape[:-1]) for column in columns))
