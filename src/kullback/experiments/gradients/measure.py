"""The expected gradient of a KL term, summed over all 27 sequences of a small language.

Whatever autograd or a policy gradient makes of a term, its mean is E[Σ c_t d log p_t]: each token's
own number times the derivative of its log-prob. The numbers are written here by hand, so that no
library of derivatives is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

import kullback as kb

Values = NDArray[np.float64]

WORLD = kb.worlds.three_tokens(ends=False)  # current is p, reference q, old the stale sampler
STEPS = tuple(round(0.02 * i, 2) for i in range(1, 51))  # of the way from p to the reference

# Of each form: the value, and its derivative in log p, where x = log p/q.
FORMS: dict[str, tuple[Callable[[Values], Values], Callable[[Values], Values]]] = {
    "k1": (lambda x: kb.k1(-x), np.ones_like),
    "k2": (lambda x: kb.k2(-x), lambda x: x),
    "k3": (lambda x: kb.k3(-x), lambda x: -np.expm1(-x)),
}


@dataclass(frozen=True, slots=True)
class Term:
    """A KL term as a trainer writes it.

    Args:
        form: A key of ``FORMS``.
        use: ``"loss"``, which is differentiated, or ``"reward"``, a constant that a policy gradient
            credits to every token up to where it is paid.
        of: What the form is taken of: each ``"token"``, added up, or the whole ``"sequence"``.
        weight: p/sampler of the ``"token"`` or of the ``"sequence"``, if there is one.
        attached: Whether the weight is differentiated.
    """

    form: str
    use: str = "loss"
    of: str = "token"
    weight: str | None = None
    attached: bool = False


TRUE = Term("k1", "reward")


def coefficients(term: Term, world: kb.worlds.Tabular, sampler: str) -> Values:
    """What stands before d log p of each token, [sequences, tokens]."""
    log_p = world.by_token("current")
    x = log_p - world.by_token("reference")
    log_weight = log_p - world.by_token(sampler)
    if term.of == "sequence":
        x = _whole(x)
    if term.weight == "sequence":
        log_weight = _whole(log_weight)
    weight = np.exp(log_weight) if term.weight else np.ones_like(x)
    value, slope = (weight * function(x) for function in FORMS[term.form])
    if term.use == "reward":
        return value if term.of == "sequence" else np.cumsum(value[:, ::-1], axis=1)[:, ::-1]
    if not term.attached:
        return slope
    # d weight = weight d log p: of its own token, or of every token of the sequence.
    shared = term.weight == "sequence" and term.of == "token"
    return slope + (_whole(value) if shared else value)


def _whole(by_token: Values) -> Values:
    """The sum of each sequence, at each of its tokens."""
    return np.broadcast_to(by_token.sum(axis=1, keepdims=True), by_token.shape)


def expected(term: Term, world: kb.worlds.Tabular, sampler: str = "current") -> Values:
    """The expected gradient in the logits of p, [contexts, tokens]."""
    _, tokens, context, _ = world.tree
    weighted = world.probability(sampler)[:, None] * coefficients(term, world, sampler)
    p = np.exp(world.log_probs["current"])
    total = np.zeros_like(p)
    np.add.at(total, (context, tokens), weighted)
    # d log p(v) = 1 at v, less p at every token of its context.
    return total - total.sum(axis=1, keepdims=True) * p


@dataclass(frozen=True, slots=True)
class Arrow:
    """A gradient beside the true one, in units of the true one's length.

    ``along`` is its part in the true direction, ``across`` the length of all the rest: length and
    angle in this plane are those in the space of all 39 logits.
    """

    along: float
    across: float

    @property
    def length(self) -> float:
        """Over the true one's."""
        return float(np.hypot(self.along, self.across))

    @property
    def cosine(self) -> float | None:
        """Of the angle to the true one; none if there is no gradient."""
        return self.along / self.length if self.length > 1e-12 else None

    @property
    def error(self) -> float:
        """The length of the difference, over the true one's."""
        return float(np.hypot(self.along - 1, self.across))


def arrow(term: Term, world: kb.worlds.Tabular, sampler: str = "current") -> Arrow:
    """A term's gradient beside that of KL(p‖q) of whole sequences."""
    true, found = expected(TRUE, world), expected(term, world, sampler)
    square = float(np.sum(true**2))
    along = float(np.sum(true * found)) / square
    rest = found - along * true
    across = float(np.sqrt(np.sum(rest**2) / square))
    # Without the rounding of the sums.
    return Arrow(*(round(part, 12) + 0.0 for part in (along, across)))


@cache
def at(part: float) -> kb.worlds.Tabular:
    """The language with its reference a part of the way from p, in log-probs."""
    p, q = WORLD.log_probs["current"], WORLD.log_probs["reference"]
    near = (1 - part) * p + part * q
    near = near - np.log(np.exp(near).sum(axis=-1, keepdims=True))
    return replace(WORLD, log_probs={**WORLD.log_probs, "reference": near})


def kl(world: kb.worlds.Tabular, p: str = "current", q: str = "reference") -> float:
    """KL of whole sequences."""
    return world.exact(kb.Question(p, q, level="sequence_sum"))
