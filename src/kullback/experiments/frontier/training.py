"""Policies that climb proxy reward − beta × a KL term: by the expected gradient, and by batches.

Whatever a term is made of, its gradient is a mean of Σ_t c_t d log p_t over answers: a number
for each word. Rao-Blackwell alone has a part without a sampled word, d KL_t at each prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

import kullback as kb
from kullback.experiments.frontier.measure import LENGTH, LOG_Q, PROXY, TREE, WORDS, WORLD, Values

EXACT = "Rao-Blackwell in the loss"
TERMS = ("k1 in the reward", EXACT, "k3 in the loss", "auto in the reward")
BETA = 0.15
RATE = 1.0  # of a step, in logits
STEPS = 200
EVERY = 5  # steps between checkpoints
BATCH = 128  # answers of a step, and of a logged KL
TABLE_Q = WORLD.log_probs["reference"]
# The contexts of each length, as the first words of all answers run through them.
_OF_LENGTH = [
    [place for place, context in enumerate(TREE.contexts) if len(context) == length]
    for length in range(LENGTH)
]


def by_word(log_p: Values) -> Values:
    """The log-prob of each word of each answer, [..., answers, words]."""
    return log_p[..., TREE.context, TREE.tokens]


def onward(values: Values) -> Values:
    """The sum from each word to the end."""
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]


def steadiest(x: Values, weight: Values) -> Values:
    """The lambda for which k1 + lambda (r − 1), summed over an answer, varies least."""
    k1, control = x.sum(axis=-1), np.expm1(-x).sum(axis=-1)
    varies = np.sum(weight * control**2, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        best = -np.sum(weight * k1 * control, axis=-1) / varies
    return np.where(varies > 1e-12, best, 1.0)  # at p = q both are 0


def paid(term: str, x: Values, weight: Values) -> Values:
    """What a term in the reward credits to each word, where x = log p/q."""
    if term == "k1 in the reward":
        return onward(kb.k1(-x))
    return onward(kb.k_lambda(-x, steadiest(x, weight)[..., None, None]))


def summed(values: Values, shape: tuple[int, ...]) -> Values:
    """What words of answers have, added up at their logits, [..., contexts, words]."""
    total = np.empty(shape)
    for length, contexts in enumerate(_OF_LENGTH):
        split = (*values.shape[:-2], len(contexts), len(WORDS), -1)
        total[..., contexts, :] = values[..., length].reshape(split).sum(axis=-1)
    return total


def collected(weighted: Values, p: Values) -> Values:
    """Σ weight d log p over all words, in the logits."""
    total = summed(weighted, p.shape)
    return total - total.sum(axis=-1, keepdims=True) * p


@dataclass(frozen=True, slots=True)
class Batch:
    """Answers to learn from.

    Args:
        share: Of each answer, [..., answers]: p itself for an expected gradient, or of the drawn.
        drawn: How many were drawn, of which the others are each one's baseline; 0 for p itself.
        known: What baselines and lambda are taken from, where that is not ``share``.
    """

    share: Values
    drawn: int = 0
    known: Values | None = None

    @property
    def of(self) -> Values:
        """The shares that baselines and lambda are taken from."""
        return self.share if self.known is None else self.known

    def centered(self, value: Values) -> Values:
        """Less the mean of the others, at each place of an answer."""
        mean = np.sum(self.of[..., None] * value, axis=-2, keepdims=True)
        return (value - mean) * (self.drawn / (self.drawn - 1) if self.drawn else 1.0)


def of_term(term: str, log_p: Values, batch: Batch) -> Values:
    """The gradient of a KL term in the logits, [..., contexts, words]."""
    p, x, share = np.exp(log_p), by_word(log_p) - LOG_Q, batch.share[..., None]
    if term == "k3 in the loss":
        return collected(share * -np.expm1(-x), p)
    if term != EXACT:
        return collected(share * batch.centered(paid(term, x, batch.of)), p)
    kl = np.sum(p * (log_p - TABLE_Q), axis=-1)
    along = kl[..., TREE.context]
    visits = summed(np.broadcast_to(share, x.shape), p.shape).sum(axis=-1, keepdims=True)
    inside = visits * p * (log_p - TABLE_Q - kl[..., None])
    return inside + collected(share * batch.centered(onward(along) - along), p)


def of_reward(log_p: Values, batch: Batch) -> Values:
    """The gradient of the proxy reward."""
    worth = np.broadcast_to(PROXY[:, None], (*batch.share.shape, LENGTH))
    return collected(batch.share[..., None] * batch.centered(worth), np.exp(log_p))


def stepped(log_p: Values, term: str | None, batch: Batch) -> Values:
    """The policy after one step uphill; without a term, the reward alone pulls."""
    slope = of_reward(log_p, batch)
    if term is not None:
        slope = slope - BETA * of_term(term, log_p, batch)
    logits = log_p + RATE * slope
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def answers(log_p: Values) -> Values:
    """The probability of each answer, [..., answers]."""
    return np.exp(by_word(log_p).sum(axis=-1))


@cache
def climbed(term: str | None, steps: int = STEPS) -> Values:
    """By the expected gradient: the tables at every step, [steps + 1, contexts, words]."""
    found = [TABLE_Q]
    for _ in range(steps):
        found.append(stepped(found[-1], term, Batch(answers(found[-1]))))
    return np.array(found)


def drawn(term: str | None, runs: int, seed: int) -> Values:
    """By batches: the tables at every ``EVERY``-th step, [checkpoints, runs, contexts, words]."""
    rng = np.random.default_rng((seed, len(TERMS) if term is None else TERMS.index(term)))
    log_p = np.broadcast_to(TABLE_Q, (runs, *TABLE_Q.shape))
    found = [log_p]
    for step in range(1, STEPS + 1):
        p = answers(log_p)
        share = rng.multinomial(BATCH, p / p.sum(axis=-1, keepdims=True)) / BATCH
        log_p = stepped(log_p, term, Batch(share, BATCH))
        if step % EVERY == 0:
            found.append(log_p)
    return np.array(found)


def noise(log_p: Values, term: str | None, worth: float = 1.0, beta: float = BETA) -> float:
    """E|g − E g|² of one answer's gradient of worth × proxy − beta × term; baselines exact."""
    p = answers(log_p)
    alone = Batch(np.eye(len(p)), known=p)
    tables = np.broadcast_to(log_p, (len(p), *log_p.shape))
    each = worth * of_reward(tables, alone)
    if term is not None:
        each = each - beta * of_term(term, tables, alone)
    apart = each - np.tensordot(p, each, axes=1)
    return float(p @ np.sum(apart**2, axis=(1, 2)))
