"""What a clamp takes away: how many tokens, how much of the KL, how much of the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from kullback.arrays import to_numpy
from kullback.formulas.k_family import k1, k2, k3
from kullback.levels import log_q_over_p, totals

_FORMULAS = {"k1": k1, "k2": k2, "k3": k3}


@dataclass(frozen=True, slots=True)
class ClampBias:
    """What a clamp does to the mean of these tokens.

    Attributes:
        form: The formula that is clamped.
        tokens: How many tokens there are.
        clamped: How many the clamp changes; in autograd their gradient is zero.
        mean: Without the clamp, nats per token.
        clamped_mean: With it.

    Example:
        >>> found = clamp_bias(log_p=[[-4.0, -1.0]], log_q=[[-1.0, -1.1]], value=10.0)
        >>> found.clamped, round(found.bias, 3)
        (1, -3.043)
    """

    form: str
    tokens: int
    clamped: int
    mean: float
    clamped_mean: float

    @property
    def bias(self) -> float:
        """What the clamp adds to the mean, in nats per token."""
        return self.clamped_mean - self.mean

    def __str__(self) -> str:
        share = f"{self.clamped} of {self.tokens} tokens ({self.clamped / self.tokens:.2%})"
        if not self.clamped:
            return (
                f"The clamp changes none of {self.tokens} tokens: {self.mean:.4g} nats per token."
            )
        relative = f" ({self.bias / self.mean:+.0%})" if 0 < abs(self.mean) < inf else ""
        return (
            f"The clamp changes {share}: {self.form} is {self.clamped_mean:.4g} nats per token "
            f"rather than {self.mean:.4g}{relative}, and these tokens have no gradient."
        )


def clamp_bias(
    *,
    log_p: Any,
    log_q: Any,
    mask: Any = None,
    form: str = "k3",
    log_ratio: float | None = None,
    value: float | None = None,
) -> ClampBias:
    """How much of a KL, and of its gradient, the clamps of a trainer take away on these tokens.

    bias = mean of the clamped terms - mean of the terms

    Several trainers clamp log p/q at 20 and k3 at 10, above which the gradient of a token is zero:
    k3 is 10 where q/p is 13.6, and so the clamp removes the very tokens that a policy has given up
    and the reference has not. A measurement of these tokens, no estimate of others. Both ends of a
    clamp are symmetric around 0.

    Args:
        log_p: Log-probs of the sampled tokens under p, [sequences, tokens], nats.
        log_q: Under q.
        mask: Which tokens count, bool or 0/1.
        form: ``k1``, ``k2`` or ``k3``.
        log_ratio: What log p/q is clamped at before the formula; None for never.
        value: What the value is clamped at after it; None for never.

    Returns:
        `ClampBias`; ``str`` of it is a sentence.

    Raises:
        ValueError: The form is unknown, a clamp is not above 0, no token counts, or shapes differ.

    Example:
        >>> print(clamp_bias(log_p=[[-4.0, -1.0]], log_q=[[-1.0, -1.1]], value=10.0))
        The clamp changes 1 of 2 tokens (50.00%): k3 is 5.002 nats per token rather than 8.045
        (-38%), and these tokens have no gradient.
    """
    if form not in _FORMULAS:
        raise ValueError(f"form {form!r} is none of {', '.join(_FORMULAS)}")
    for name, bound in (("log_ratio", log_ratio), ("value", value)):
        if bound is not None and not bound > 0:
            raise ValueError(f"{name} is {bound}, expected a number above 0")
    flags = None if mask is None else to_numpy(mask, "mask")
    log_r = log_q_over_p(log_p=to_numpy(log_p, "log_p"), log_q=to_numpy(log_q, "log_q"), mask=flags)
    free = np.asarray(_FORMULAS[form](log_r), dtype=np.float64)
    bounded = log_r if log_ratio is None else np.clip(log_r, -log_ratio, log_ratio)
    cut = np.asarray(_FORMULAS[form](bounded), dtype=np.float64)
    if value is not None:
        cut = np.clip(cut, -value, value)
    lengths = None if free.ndim == 2 else np.array([free.size])
    sums = totals(free, mask=flags, lengths=lengths)
    if not sums.tokens:
        raise ValueError("no token counts: the mask is empty")
    return ClampBias(
        form=form,
        tokens=sums.tokens,
        clamped=int(np.count_nonzero(cut != free)),
        mean=sums.at("token_mean"),
        clamped_mean=totals(cut, mask=flags, lengths=lengths).at("token_mean"),
    )
