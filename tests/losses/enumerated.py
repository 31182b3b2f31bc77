"""Small languages with logits to differentiate: what a loss has in the mean, and what it claims.

The quantities are written as what they are, sums over all sequences of a probability times a value,
and torch differentiates them: no estimator and no score function is in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from kullback.losses.forms import CLAIMS
from kullback.worlds.tabular import Tabular, three_tokens

WORLDS = {"fixed": three_tokens(ends=False), "eos": three_tokens(ends=True)}


@dataclass(frozen=True, eq=False)
class Language:
    """A world in torch: the policy that learns is ``logits``, the others stand still."""

    world: Tabular
    learner: str = "current"

    @cached_property
    def torch(self) -> Any:
        import torch

        return torch

    @cached_property
    def logits(self) -> Any:
        return self.torch.tensor(self.world.log_probs[self.learner], requires_grad=True)

    @cached_property
    def alive(self) -> Any:
        return self.torch.tensor(self.world.tree.alive)

    def table(self, role: str) -> Any:
        """Log-probs at each context, [contexts, tokens]."""
        if role == self.learner:
            return self.logits.log_softmax(-1)
        return self.torch.tensor(self.world.log_probs[role])

    def by_token(self, role: str) -> Any:
        """Log-probs along each sequence, [sequences, length]; 0 past the end."""
        _, tokens, context, alive = self.world.tree
        picked = self.table(role)[context, tokens]
        return self.torch.where(self.torch.tensor(alive), picked, 0.0)

    def along(self, by_context: Any) -> Any:
        """A value of each context along each sequence, 0 past the end."""
        return self.torch.where(self.alive, by_context[self.world.tree.context], 0.0)

    def probability(self, role: str) -> Any:
        return self.by_token(role).sum(-1).exp()

    def kl(self, p: str, q: str) -> Any:
        """KL(p||q) of the next token at each context."""
        a, b = self.table(p), self.table(q)
        return (a.exp() * (a - b)).sum(-1)

    def square(self, p: str, q: str) -> Any:
        """E_p[(log p/q)^2] / 2 of the next token at each context."""
        a, b = self.table(p), self.table(q)
        return (a.exp() * (a - b) ** 2 / 2).sum(-1)

    def slope(self, scalar: Any) -> np.ndarray:
        """The gradient of a scalar in the logits."""
        if not scalar.requires_grad:
            return np.zeros(self.logits.shape)
        (found,) = self.torch.autograd.grad(scalar, self.logits, retain_graph=True)
        return found.numpy()

    def at_prefixes(self, by_context: Any, prefixes: str) -> Any:
        """The sum along a sequence of a value of its contexts, over prefixes that stand still."""
        return (self.probability(prefixes).detach() * self.along(by_context).sum(-1)).sum()

    def expected(self, value: Any, role: str) -> Any:
        """The mean of a value of each sequence under a role, which learns too if it does."""
        return (self.probability(role) * value).sum()

    def length(self, role: str) -> Any:
        return self.expected(self.alive.sum(-1), role)


class Setting(NamedTuple):
    """Who samples, whose prefixes are meant, and what a token counts."""

    sampled_by: str  # "p" or "other"
    prefixes: str
    weights: str


SETTINGS = [
    Setting("p", "sampler", "none"),
    Setting("p", "p", "none"),
    Setting("other", "sampler", "token"),
    Setting("other", "p", "prefix"),
    Setting("other", "p", "sequence"),
]


def goes(gradient: str, form: str, setting: Setting) -> bool:
    if gradient == "token":
        return True
    of_sums = form in ("k1", "k2", "k3")
    return setting.prefixes == "p" and not (of_sums and setting.weights == "prefix")


CASES = [(*key, setting) for key in CLAIMS for setting in SETTINGS if goes(key[1], key[2], setting)]


@cache
def language(name: str) -> Language:
    return Language(WORLDS[name])


def roles(learn: str, setting: Setting) -> tuple[str, str, str]:
    """p, q and the sampler; ``current`` is the one that learns."""
    p, q = ("current", "reference") if learn == "p" else ("reference", "current")
    return p, q, p if setting.sampled_by == "p" else "old"


def claimed(
    lang: Language, quantity: str, learn: str, gradient: str, setting: Setting, aggregate: str
) -> Any:
    """What a form says that it descends, written out over the language."""
    p, q, s = roles(learn, setting)
    over = p if setting.prefixes == "p" else s
    length = lang.length(over) if aggregate == "token_mean" else lang.torch.tensor(1.0)
    if quantity == "0":
        return lang.torch.tensor(0.0)
    if gradient == "sequence" and quantity == "KL(q||p)":
        return lang.expected((lang.by_token(q) - lang.by_token(p)).sum(-1), q) / length.detach()
    by_context = {
        "KL(p||q)": lang.kl(p, q),
        "KL(q||p)": lang.kl(q, p),
        "E_p[x^2] / 2": lang.square(p, q),
    }[quantity]
    if gradient == "token" or learn == "q":
        return lang.at_prefixes(by_context, over) / length.detach()
    return lang.expected(lang.along(by_context).sum(-1), p) / length
