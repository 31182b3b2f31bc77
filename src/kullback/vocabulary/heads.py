"""Divergences from hidden states and the heads that read them, tile after tile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kullback.vocabulary.chain import Part
from kullback.vocabulary.head import Head, heads
from kullback.vocabulary.pieces import Compiled, Plain, pieces
from kullback.vocabulary.scaling import Scaling, scaling
from kullback.vocabulary.sums import where_defined
from kullback.vocabulary.whole import Whole

# Categories of a tile, and tokens that go through the heads together: a product of this size runs
# at full speed, and its result stays in the cache of a CPU.
_TILE = 2048
_CPU_TOKENS, _DEVICE_TOKENS = 512, 4096


def head_divergences(
    *,
    hidden_p: Any,
    head_p: Any,
    hidden_q: Any,
    head_q: Any,
    bias_p: Any = None,
    bias_q: Any = None,
    temperature: float = 1.0,
    soft_cap: float | None = None,
    js: bool = False,
    compiled: bool | None = None,
) -> Whole:
    """The divergences of `whole_vocabulary` from hidden states, without the logits.

    logits = hidden @ head.T + bias, a tile of 2048 categories at a time; tiles are joined by the
    chain rule, KL = KL between tiles + sum of p(tile) KL within the tile

    Exact, never negative, and no gradient, as there. Memory is that of one tile; time is about
    that of the two matrix products alone. Where both sides have one head (``head_p is head_q``) its
    weights are read once. Logits have the precision of the hidden states and heads, sums float32
    at least. torch only, on any device.

    Args:
        hidden_p: [..., width] last hidden states of the policy that comes first.
        head_p: [vocabulary, width] weights that make logits of them, as ``lm_head.weight``.
        hidden_q: [..., width of q] of the other policy, at the same tokens.
        head_q: [vocabulary, width of q] its weights, over the same vocabulary.
        bias_p: [vocabulary], where the head has one.
        bias_q: the same of q.
        temperature: what the logits of both are divided by, last.
        soft_cap: logits become cap * tanh(logits / cap) first, as in Gemma 2.
        js: also the Jensen-Shannon divergence, which has to know both normalizers before its first
            term: a second pass, which doubles the time.
        compiled: as for `whole_vocabulary`.

    Returns:
        A `Whole` of [...] numbers; its js is None unless asked for.

    Raises:
        TypeError: for what is no floating tensor of torch.
        ValueError: for shapes or devices that do not fit, a temperature or cap that is not above 0,
            or compiled=True where the kernel cannot be used.

    Example:
        >>> head_divergences(hidden_p=[[1.0]], head_p=[[1.0]], hidden_q=[[1.0]], head_q=[[1.0]])
        Traceback (most recent call last):
        TypeError: hidden_p is of type list, expected a tensor of torch; make logits of some rows
        at a time and use whole_vocabulary
    """
    scale = scaling(temperature, soft_cap)
    left, right = heads(
        names=("p", "q"),
        hidden=(hidden_p, hidden_q),
        weight=(head_p, head_q),
        bias=(bias_p, bias_q),
    )
    import torch

    dtype = torch.promote_types(torch.promote_types(hidden_p.dtype, hidden_q.dtype), torch.float32)
    like = left.hidden.new_empty(0, dtype=dtype)
    tokens, vocabulary = len(left.hidden), len(head_p)
    way = pieces(like, tokens * vocabulary, min(_TILE, vocabulary), compiled)
    step = _CPU_TOKENS if like.device.type == "cpu" else _DEVICE_TOKENS
    found = []
    with torch.no_grad():
        for i in range(0, max(1, tokens), step):
            some = slice(i, i + step)
            made = _Tiles(left.of(some), right.of(some), like, scale)
            found.append(_in_two_passes(made, way) if js else _in_one_pass(made, way))
    columns = torch.cat(found).reshape(*hidden_p.shape[:-1], 6).unbind(-1)
    return Whole(*columns[:5], js=columns[5] if js else None)


class _Tiles:
    """The logits of both sides, tile after tile, in the same memory."""

    def __init__(self, left: Head, right: Head, like: Any, scale: Scaling) -> None:
        import torch

        self._scale, self._vocabulary = scale, len(left.weight)
        self._tokens = len(left.hidden)
        self._sides = [left, right]
        if left.is_that_of(right):
            self._sides = [Head(torch.cat([left.hidden, right.hidden]), left.weight, left.bias)]
        self._room = like.new_empty(2 * self._tokens * min(_TILE, self._vocabulary))

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for start in range(0, self._vocabulary, _TILE):
            part = slice(start, min(start + _TILE, self._vocabulary))
            width = part.stop - start
            both = self._room[: 2 * self._tokens * width].view(len(self._sides), -1, width)
            for side, out in zip(self._sides, both, strict=True):
                side.logits(part, self._scale, out)
            yield tuple(both.view(2, self._tokens, width))


def _in_one_pass(tiles: _Tiles, way: Plain | Compiled) -> Any:
    """The six sums but JS, by the chain rule."""
    parts = (Part(*way.sums(a, b, js=False)) for a, b in tiles)
    whole = next(parts)
    for part in parts:
        whole = whole.joined(part)
    return where_defined(*whole)


def _in_two_passes(tiles: _Tiles, way: Plain | Compiled) -> Any:
    """The six sums, with the normalizers of the whole vocabulary."""
    import torch

    parts = [(way.log_normalizers(a), way.log_normalizers(b)) for a, b in tiles]
    log_z_p, log_z_q = (torch.stack(side).logsumexp(0) for side in zip(*parts, strict=True))
    shares = [way.sums(a, b, (log_z_p, log_z_q))[2] for a, b in tiles]
    return where_defined(log_z_p, log_z_q, torch.stack(shares).sum(0))
