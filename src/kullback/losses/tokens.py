"""The sampled tokens of a batch as a loss needs them: masked, widened, with their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kullback.arrays import cast, held, namespace, own, wide
from kullback.levels import Totals, selected, totals
from kullback.losses.along import Along

IMPOSSIBLE = -1e4  # a log-weight that is 0 as a weight, in any precision, and can be subtracted


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Log-ratios and weights of the tokens, 0 and 1 outside the mask.

    Attributes:
        xp: The namespace of the arrays.
        counted: 1 at the tokens that count, 0 elsewhere.
        log_p: Under p; the gradient flows through it. 0 where p gives the token no mass.
        log_q: Under q, likewise.
        log_q_over_p: log q − log p, a constant, and clamped if that was asked for.
        log_weight: The log of what the token counts, p/s by the question, a constant.
        log_weight_before: The same of the tokens before it, for what is known before it is drawn.
        q_alone: Where p gives the token no mass: q/s by the weight of what stands before; else 0.
        along: How to sum along the sequences.
        lengths: Of flat values; None for padded ones.
    """

    xp: Any
    counted: Any
    log_p: Any
    log_q: Any
    log_q_over_p: Any
    log_weight: Any
    log_weight_before: Any
    q_alone: Any
    along: Along
    lengths: Any

    def weight(self, truncate: float | None) -> Any:
        """What a token counts, truncated if that was asked for."""
        return _cut(self.xp.exp(self.log_weight), truncate, self.xp)

    def weight_before(self, truncate: float | None) -> Any:
        """What the prefix of a token counts."""
        return _cut(self.xp.exp(self.log_weight_before), truncate, self.xp)

    def selected(self, values: Any) -> Any:
        """A value of each token that the caller gives, 0 outside the mask.

        Raises:
            ValueError: It has another shape than the tokens.
        """
        return selected(wide(values, self.xp), self.counted, self.xp)[0]

    def totals(self, values: Any) -> Totals:
        """The sums of a value of each token."""
        return totals(values, mask=self.counted, lengths=self.lengths)


def _cut(weight: Any, truncate: float | None, xp: Any) -> Any:
    return weight if truncate is None else xp.clip(weight, None, truncate)


def tokens_of(
    *,
    log_p: Any,
    log_q: Any,
    log_sampler: Any,
    mask: Any,
    lengths: Any,
    weights: str,
    clamp: float | None,
) -> Tokens:
    """Select, widen and weigh.

    Raises:
        ValueError: The shapes differ, or flat values come without lengths.
        TypeError: The arrays belong to different libraries.
    """
    given = [one for one in (log_p, log_q, log_sampler, mask) if one is not None]
    xp = namespace(*given)
    p, q = wide(log_p, xp), wide(log_q, xp)
    s = p if log_sampler is None else wide(log_sampler, xp)
    counted = xp.ones_like(p) if mask is None else own(mask, xp)
    _fit(p, q, s, counted, lengths)
    flags = counted
    p, q, s = (selected(one, flags, xp)[0] for one in (p, q, s))
    counted = selected(xp.ones_like(p), flags, xp)[1]
    # What p cannot draw has weight 0; its log-prob, and the gradient of that, is never needed.
    possible = p > -xp.inf
    log_p, log_q = xp.where(possible, p, 0.0), xp.where(possible, q, 0.0)
    ratio = held(log_q, xp) - held(log_p, xp)
    if clamp is not None:
        ratio = xp.clip(ratio, -clamp, clamp)
    along = Along(p, lengths, xp)
    single = xp.where(possible, held(p, xp) - held(s, xp), IMPOSSIBLE)
    here, before = _log_weights(single, weights, along, xp)
    q_alone = xp.where(possible, 0.0, xp.exp(xp.where(possible, 0.0, before + held(q - s, xp))))
    return Tokens(xp, counted, log_p, log_q, ratio, here, before, q_alone, along, lengths)


def _log_weights(single: Any, weights: str, along: Along, xp: Any) -> tuple[Any, Any]:
    """By what the question asks: of the token, and of what stands before it."""
    nothing = xp.zeros_like(single)
    if weights == "none":
        return nothing, nothing
    if weights == "token":
        return single, nothing
    to_here = along.to_here(single)
    if weights == "prefix":
        return to_here, to_here - single
    whole = to_here + along.from_here(single) - single
    return whole, whole


def _fit(p: Any, q: Any, s: Any, counted: Any, lengths: Any) -> None:
    shapes = {
        name: tuple(one.shape)
        for name, one in (("log_p", p), ("log_q", q), ("log_sampler", s), ("mask", counted))
    }
    for name, shape in shapes.items():
        if shape != shapes["log_p"]:
            raise ValueError(
                f"{name} has shape {shape}, log_p {shapes['log_p']}: give all for the same tokens"
            )
    if lengths is None and p.ndim != 2:
        raise ValueError(
            f"log_p has shape {tuple(p.shape)}: give [sequences, tokens] and a mask, or flat "
            "values and lengths"
        )
    if lengths is not None and p.ndim != 1:
        raise ValueError("lengths go with flat values; for [sequences, tokens] give a mask")


def like_result(value: Any, log_p: Any, xp: Any) -> Any:
    """A loss in the precision of what is learned, float32 at least."""
    return cast(own(value, xp), xp.promote_types(own(log_p, xp).dtype, xp.float32), xp)
