"""From tokens to one number: how a function averages, and whether padding gets in.

Measured with the function's own answers, whatever it computes: what it gives for a batch is held
against what it gives for each sequence alone, and that against each token alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kullback.audit.calling import Caller
from kullback.audit.differentiating import Outcome
from kullback.audit.scenes import APART, Array, Batch, sequence, staged, together

_CLOSE = 1e-6  # float32 somewhere inside is no other rule


@dataclass(frozen=True, slots=True)
class Aggregation:
    """How it comes from tokens to what it returns.

    Attributes:
        returns: ``scalar``, ``sequence`` (one per sequence) or ``token``.
        within: Over a sequence: ``sum``, ``mean``, or ``joint``, where it is made of the whole.
        batch: Over the batch: ``sum``, ``mean`` (of the sequences), ``tokens`` (each token counts
            alike), ``padded`` (the sum over tokens, divided by all positions, padding included),
            ``none`` (it returns them apart) or ``other``.
        takes_mask: Whether it has a mask.
        leaks: Whether what stands at masked positions changes it.
        adds: Whether value and gradient of a batch are made of those of its sequences alone.
    """

    returns: str
    within: str
    batch: str
    takes_mask: bool
    leaks: bool
    adds: bool = True

    @property
    def level(self) -> str:
        """The rule in one word, as of `kullback.levels` where that has it."""
        if self.returns != "scalar":
            return f"per_{self.returns}"
        names = {
            ("sum", "mean"): "sequence_sum",
            ("joint", "mean"): "sequence_sum",
            ("mean", "mean"): "sequence_mean",
            ("mean", "tokens"): "token_mean",
            ("sum", "sum"): "sum",
            ("joint", "sum"): "sum",
            ("mean", "padded"): "padded_mean",
        }
        return names.get((self.within, self.batch), "other")


def aggregation(caller: Caller, *, averaged: bool | None = None) -> Aggregation:
    """Measure it.

    Args:
        caller: The function.
        averaged: Whether it is divided by the length of a sequence, if that is known: where a
            sequence is one whole (a weight of all its tokens), its tokens alone do not show it.
    """
    world = staged(APART.name, ends=False)
    # Rows whose first tokens differ; cut, for three lengths with numbers unlike each other.
    rows = [sequence(world, row) for row in (5, 15, 22)]
    cut = [rows[0], _cut(rows[1], 1), _cut(rows[2], 2)]
    returns = _returns(caller, rows)
    within = _within(caller, rows[0])
    if within == "joint" and averaged:
        within = "mean"
    takes_mask = "mask" in caller.given
    if not takes_mask:
        batch, adds = _rule(caller, rows, within)
        return Aggregation(returns, within, batch, takes_mask=False, leaks=True, adds=adds)
    mask = together(cut).mask
    one, other = (caller(together(cut, padding=fill)).values for fill in (-1.5, -0.6))
    leaks = not _same(_counted(one, mask), _counted(other, mask))
    batch, adds = _rule(caller, rows if leaks else cut, within)
    return Aggregation(returns, within, batch, takes_mask=True, leaks=leaks, adds=adds)


def breaks(caller: Caller) -> str:
    """What breaks where masked positions hold −inf.

    Returns:
        ``value`` or ``gradient``, if it is not finite; what it raised; or nothing.
    """
    row = sequence(staged(APART.name, ends=False), 5)
    batch = together([row, _cut(row, 1)])
    at_padding = ~batch.mask[..., None]
    infinite = {
        role: np.where(at_padding, -np.inf, table) for role, table in batch.log_probs.items()
    }
    try:
        outcome = caller(replace(batch, log_probs=infinite))
    except ValueError as error:
        return str(error)
    if not np.isfinite(_counted(outcome.values, batch.mask)).all():
        return "value"
    slopes = [one for key, one in outcome.gradient.items() if key.startswith("current")]
    return "" if all(np.isfinite(one).all() for one in slopes) else "gradient"


def _cut(batch: Batch, start: int) -> Batch:
    """The last tokens of each sequence."""
    return Batch(
        {role: table[:, start:] for role, table in batch.log_probs.items()},
        batch.tokens[:, start:],
        batch.mask[:, start:],
    )


def _returns(caller: Caller, rows: list[Batch]) -> str:
    return ("scalar", "sequence", "token")[caller(together(rows[:2])).values.ndim]


def _within(caller: Caller, row: Batch) -> str:
    """From its tokens, each alone, to the whole sequence."""
    tokens = [_token(row, place) for place in range(row.mask.shape[1])]
    each = np.array([caller(one).values.sum() for one in tokens])
    whole = float(caller(row).values.sum())
    if _same(whole, each.sum()):
        return "sum"
    return "mean" if _same(whole, each.mean()) else "joint"


def _token(batch: Batch, place: int) -> Batch:
    here = slice(place, place + 1)
    tables = {role: table[:, here] for role, table in batch.log_probs.items()}
    return Batch(tables, batch.tokens[:, here], batch.mask[:, here])


def _rule(caller: Caller, batches: list[Batch], within: str) -> tuple[str, bool]:
    """How a batch comes from its sequences, and whether it is made of them alone."""
    alone, batch = [caller(one) for one in batches], together(batches)
    found = caller(batch)
    lengths = np.array([one.mask.sum() for one in batches])
    shares = {
        "tokens": lengths / lengths.sum(),
        "mean": np.full(len(lengths), 1 / len(lengths)),
        "sum": np.ones(len(lengths)),
        "padded": lengths / (len(lengths) * lengths.max()),
    }
    if found.values.ndim:
        flat = np.concatenate([np.ravel(one.values) for one in alone])
        rule = "none" if _same(_counted(found.values, batch.mask).ravel(), flat) else "other"
        shares["none"] = shares["sum"]
    else:
        each = np.array([float(one.values.sum()) for one in alone])
        # Of one length, the first two are one rule.
        first = ("tokens", "mean") if within == "mean" else ("mean", "tokens")
        names = (*first, "sum", "padded")
        fits = (name for name in names if _same(found.values, each @ shares[name]))
        rule = next(fits, "other")
    return rule, rule != "other" and _gradient_adds(found, alone, shares[rule])


def _gradient_adds(found: Outcome, alone: list[Outcome], shares: Array) -> bool:
    for key in ("current", "current_logits"):
        rows = [row for row, one in enumerate(alone) if key in one.gradient]
        if not rows or key not in found.gradient:
            continue
        own = [shares[row] * alone[row].gradient[key][0] for row in rows]
        seen = [found.gradient[key][row, : len(one)] for row, one in zip(rows, own, strict=True)]
        if not _same(*(np.concatenate([one.ravel() for one in side]) for side in (seen, own))):
            return False
    return True


def _counted(values: Array, mask: NDArray[np.bool_]) -> Array:
    return values[mask] if values.shape == mask.shape else values


def _same(one: Array | float, other: Array | float) -> bool:
    """Whether they are close, for their size: small elements beside large ones have no digits."""
    room = max(1e-12, _CLOSE * float(np.abs(other).max(initial=0.0)))
    return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=_CLOSE, atol=room)
