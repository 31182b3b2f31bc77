"""What a term does with ratios far from 1: clamps, and where its gradient dies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kullback.audit.calling import Caller
from kullback.audit.differentiating import Outcome
from kullback.audit.forms import SAMPLED, Form, values
from kullback.audit.scenes import Batch, single

FARTHEST = 38.0  # nats
_LIKELY = -2.0  # the log-prob of the likelier side, in nats
_PLACES = (1e-4, 0.01, 1.0, 3.0, 8.0, 16.0, FARTHEST - 1, FARTHEST)


@dataclass(frozen=True, slots=True)
class Clamp:
    """Beyond some ratio the term, the log-ratio in it or its weight is constant.

    Attributes:
        of: ``output`` (the term), ``input`` (the log-ratio) or ``weight``.
        at: Where it is held: nats; of a weight, the weight.
        log_ratio: Where it begins: log q/p, or the log of the weight. Its sign is the side.
        gradient: Whether a gradient is left beyond.
    """

    of: str
    at: float
    log_ratio: float
    gradient: bool

    def as_data(self) -> dict[str, Any]:
        """As strings and numbers."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Tail:
    """A recognized term on single tokens, as a function of one log-ratio.

    Args:
        caller: The function.
        form: What it computes near 0.
        factor: By what that is multiplied.
        weight: Whether the log of its weight varies, and log q/p does not.
    """

    def __init__(self, caller: Caller, form: Form, factor: float, *, weight: bool = False) -> None:
        self._caller, self._form, self._factor, self._weight = caller, form, factor, weight

    def batch(self, log_ratio: float) -> Batch:
        """One token at which the log-ratio is this."""
        form, weight = self._form, self._form.weight
        lower = _LIKELY - abs(log_ratio)
        if self._weight and weight:
            target, sampler = (_LIKELY, lower) if log_ratio > 0 else (lower, _LIKELY)
            roles = dict.fromkeys(("current", "reference", "old", "rollout"), target)
            rest = form.q if form.q not in (weight.target, weight.sampler) else form.p
            return single(roles | {weight.sampler: sampler, rest: target - 0.7})
        log_p, log_q = (lower, _LIKELY) if log_ratio > 0 else (_LIKELY, lower)
        roles = dict.fromkeys(
            ("current", "reference", "old", "rollout"), log_q if form.q == "current" else log_p
        )
        return single(roles | {form.p: log_p, form.q: log_q})

    def outcome(self, log_ratio: float, *, dtype: Any = np.float64) -> Outcome:
        """What it gives, with its gradient."""
        return self._caller(self.batch(log_ratio), dtype=dtype)

    def seen(self, log_ratio: float) -> float:
        """What it gives."""
        return float(self.outcome(log_ratio).values.sum())

    def meant(self, log_ratio: float) -> float:
        """What its formula gives."""
        plain = replace(self._form, unit="token")
        return self._factor * float(values(plain, self.batch(log_ratio)).sum())

    def moves(self, log_ratio: float) -> bool:
        """Whether a gradient flows to a policy of the pair there."""
        found = self.outcome(log_ratio).gradient
        pair = (self._form.p, self._form.q)
        return any(
            np.any(one != 0) for key, one in found.items() if key.removesuffix("_logits") in pair
        )

    def clamp(self, side: float) -> Clamp | None:
        """The clamp on one side, if there is one."""
        far = self.seen(side * FARTHEST)
        if _close(far, self.meant(side * FARTHEST)):
            return None
        if not _close(far, self.seen(side * (FARTHEST - 1))):
            return None
        start = self.meant(0.0) - far
        edge = side * _edge(lambda x: (self.meant(side * x) - far) * start > 0)
        if self._weight:
            return Clamp("weight", _rounded(np.exp(edge)), edge, self.moves(edge + side))
        level = far / self._factor
        by_input = _unroundness(edge) < _unroundness(level)
        at = _rounded(edge if by_input else level)
        return Clamp("input" if by_input else "output", at, edge, self.moves(edge + side))


def clamps(caller: Caller, form: Form, factor: float) -> tuple[Clamp, ...]:
    """The clamps of a term of sampled tokens that was recognized."""
    if not has_tails(form, caller):
        return ()
    tails = [Tail(caller, form, factor)]
    if form.weight and form.weight.sampler not in (form.p, form.q):
        tails.append(Tail(caller, form, factor, weight=True))
    found = [tail.clamp(side) for tail in tails for side in (1.0, -1.0)]
    return tuple(one for one in found if one)


def departures(
    caller: Caller, form: Form, factor: float, found: tuple[Clamp, ...]
) -> tuple[float, ...]:
    """The log-ratios, of some, where it is not its formula, and no clamp explains it."""
    if not has_tails(form, caller):
        return ()
    tail = Tail(caller, form, factor)
    sides = {np.sign(one.log_ratio): abs(one.log_ratio) for one in found if one.of != "weight"}
    places = [side * x for side in (1.0, -1.0) for x in _PLACES if x < sides.get(side, np.inf)]
    return tuple(x for x in places if not _close(tail.seen(x), tail.meant(x), small=abs(x) < 1))


def has_tails(form: Form, caller: Caller) -> bool:
    """Whether it is a function of the log-ratio of a sampled token, which can be made large."""
    return form.method in SAMPLED and form.scale == "nats" and {form.p, form.q} <= set(caller.roles)


def _close(one: float, other: float, *, small: bool = False) -> bool:
    # A small value of exp(x) - 1 - x has few digits: that is no clamp.
    return bool(np.isclose(one, other, rtol=1e-4, atol=1e-6 if small else 1e-9))


def _edge(is_inside: Callable[[float], bool]) -> float:
    """Where a condition that holds at 0 ceases, in nats; by halving."""
    low, high = 0.0, FARTHEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if is_inside(middle) else (low, middle)
    return low


def _unroundness(value: float) -> float:
    """How far from a number with one digit after the point: a clamp has a round one."""
    return abs(value - round(value, 1))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
