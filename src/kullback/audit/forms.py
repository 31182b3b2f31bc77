"""What people write for a KL term, each with its value and its derivative in closed form.

A form is pointwise: what it gives for one sampled sequence. Which gradient it has in expectation
is the business of ``gradients``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kullback.audit.scenes import Array, Batch


class Function(NamedTuple):
    """A function of x = log q/p, and its derivative."""

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]


# Of a sampled token. Whether the mean is a KL depends on who sampled.
SAMPLED: Mapping[str, Function] = {
    "k1": Function(lambda x: -x, lambda x: -np.ones_like(x)),
    "k2": Function(lambda x: x * x / 2, lambda x: x),
    "k3": Function(lambda x: np.expm1(x) - x, np.expm1),
    "|log r|": Function(np.abs, np.sign),
    "r log r - (r - 1)": Function(lambda x: x * np.exp(x) - np.expm1(x), lambda x: x * np.exp(x)),
    "r log r": Function(lambda x: x * np.exp(x), lambda x: (1 + x) * np.exp(x)),
    "r": Function(np.exp, np.exp),
    "exp(x) - x": Function(lambda x: np.exp(x) - x, np.expm1),
}

# What stands where log q/p should: its value and its derivative in log p and log q.
SCALES = ("nats", "bits", "probabilities", "ratios")


class Divergence(NamedTuple):
    """A sum over the vocabulary of a function of p and q, and its derivatives in p and in q."""

    value: Callable[[Array, Array], Array]
    by_p: Callable[[Array, Array], Array]
    by_q: Callable[[Array, Array], Array]


def _middle(p: Array, q: Array) -> Array:
    return (p + q) / 2


EXACT: Mapping[str, Divergence] = {
    "KL": Divergence(
        lambda p, q: p * np.log(p / q), lambda p, q: np.log(p / q), lambda p, q: -p / q
    ),
    "cross-entropy": Divergence(
        lambda p, q: -p * np.log(q), lambda _, q: -np.log(q), lambda p, q: -p / q
    ),
    "JS": Divergence(
        lambda p, q: (p * np.log(p / _middle(p, q)) + q * np.log(q / _middle(p, q))) / 2,
        lambda p, q: np.log(p / _middle(p, q)) / 2,
        lambda p, q: np.log(q / _middle(p, q)) / 2,
    ),
    "TV": Divergence(
        lambda p, q: np.abs(p - q) / 2,
        lambda p, q: np.sign(p - q) / 2,
        lambda p, q: np.sign(q - p) / 2,
    ),
    "squared difference": Divergence(
        lambda p, q: (p - q) ** 2, lambda p, q: 2 * (p - q), lambda p, q: 2 * (q - p)
    ),
    "entropy": Divergence(
        lambda p, _: -p * np.log(p), lambda p, _: -np.log(p), lambda p, _: np.zeros_like(p)
    ),
}


@dataclass(frozen=True, slots=True)
class Weight:
    """A factor, target over sampler.

    Args:
        target: The role above the line.
        sampler: The role below it; ``itself``: a copy of the target that is held constant.
        span: The tokens whose ratios are multiplied: ``token``, ``prefix`` (up to and with the
            token), ``sequence``, or ``average`` (the geometric mean over the sequence).
        attached: Whether the weight is differentiated; ``own``: in the ratio of its own token.
    """

    target: str
    sampler: str
    span: str
    attached: str = "no"


@dataclass(frozen=True, slots=True)
class Form:
    """A KL term, or what somebody took for one.

    Args:
        method: A name of ``SAMPLED`` or ``EXACT``; ``log-prob`` (of p alone), or ``p log p/q``, the
            term of the sampled token in the sum over the vocabulary.
        p: The role that comes first.
        q: The other.
        unit: ``token``; or ``sequence`` and ``average``, where log q/p is summed or averaged over
            the sequence before the formula.
        scale: A name of ``SCALES``.
        weight: The factor, if any.
        credit: None: differentiated as it stands. Else held constant as a cost beside the log-prob
            of ``full_return``, ``reward_to_go``, ``immediate`` or ``future`` (exact terms are
            differentiated too, and what comes after is the cost).
    """

    method: str
    p: str
    q: str
    unit: str = "token"
    scale: str = "nats"
    weight: Weight | None = None
    credit: str | None = None


def values(form: Form, batch: Batch) -> Array:
    """What it gives, [sequences, tokens] or, where its unit is no token, [sequences]."""
    weights = _weights(form.weight, batch)
    terms = _terms(form, batch)
    return terms * (weights if form.unit == "token" else weights[:, 0])


def slopes(form: Form, batch: Batch) -> Array:
    """The derivative, by the current logits at each position, of what it sums to per sequence.

    Returns:
        [sequences, tokens, alphabet].
    """
    score = _score(batch)
    if form.method in EXACT:
        pulled = np.zeros_like(score)
        if form.credit in (None, "future"):
            weights = _weights(form.weight, batch)
            pulled = weights[..., None] * _exact_slopes(form, batch)
        if form.credit:
            pulled = pulled + credited(_terms(form, batch), form.credit)[..., None] * score
        elif form.weight:
            pulled = pulled + _attached(form, values(form, batch), batch)[..., None] * score
        return pulled
    if form.credit:
        weights, terms = _weights(form.weight, batch), _terms(form, batch)
        if terms.ndim == 1:
            terms = terms[:, None] * (np.arange(batch.mask.shape[1]) == 0)
        coefficient = weights * credited(terms, form.credit)
    else:
        coefficient = _sampled_slopes(form, batch)
        if form.weight:
            coefficient = coefficient + _attached(form, values(form, batch), batch)
    return np.where(batch.mask, coefficient, 0.0)[..., None] * score


def _score(batch: Batch) -> Array:
    """The derivative of the token's log-prob by the current logits."""
    table = batch.log_probs["current"]
    chosen = batch.tokens[..., None] == np.arange(table.shape[-1])
    return np.where(batch.mask[..., None], chosen - np.exp(table), 0.0)


def _log_ratio(p: str, q: str, scale: str, batch: Batch) -> tuple[Array, Array]:
    """What stands for log q/p, and its derivative by the current log-prob."""
    log_p, log_q = batch.given(p), batch.given(q)
    if scale == "probabilities":
        x = np.exp(log_q) - np.exp(log_p)
        slope = np.exp(log_q) * (q == "current") - np.exp(log_p) * (p == "current")
    else:
        x = log_q - log_p
        slope = np.full_like(x, float(q == "current") - float(p == "current"))
    if scale == "bits":
        x, slope = x / np.log(2), slope / np.log(2)
    if scale == "ratios":
        x, slope = np.exp(x), slope * np.exp(x)
    return np.where(batch.mask, x, 0.0), np.where(batch.mask, slope, 0.0)


def _united(x: Array, unit: str, batch: Batch) -> Array:
    if unit == "token":
        return x
    total = x.sum(axis=1)
    return total / batch.mask.sum(axis=1) if unit == "average" else total


def _terms(form: Form, batch: Batch) -> Array:
    if form.method in ("log-prob", "p log p/q"):
        log_p, log_q = batch.given(form.p), batch.given(form.q)
        terms = log_p if form.method == "log-prob" else np.exp(log_p) * (log_p - log_q)
        return np.where(batch.mask, terms, 0.0)
    if form.method in EXACT:
        p, q = (np.exp(batch.log_probs[role]) for role in (form.p, form.q))
        return np.where(batch.mask, EXACT[form.method].value(p, q).sum(axis=-1), 0.0)
    x, _ = _log_ratio(form.p, form.q, form.scale, batch)
    terms = SAMPLED[form.method].value(_united(x, form.unit, batch))
    return np.where(batch.mask, terms, 0.0) if form.unit == "token" else terms


def _sampled_slopes(form: Form, batch: Batch) -> Array:
    """By the current log-prob of each token, the weight held constant; [sequences, tokens]."""
    weights = _weights(form.weight, batch)
    if form.method == "log-prob":
        return weights * float(form.p == "current")
    if form.method == "p log p/q":
        log_p, log_q = batch.given(form.p), batch.given(form.q)
        by_p, by_q = float(form.p == "current"), float(form.q == "current")
        return weights * np.exp(log_p) * ((1 + log_p - log_q) * by_p - by_q)
    x, slope = _log_ratio(form.p, form.q, form.scale, batch)
    outer = SAMPLED[form.method].slope(_united(x, form.unit, batch))
    if form.unit == "token":
        return weights * outer * slope
    if form.unit == "average":
        outer = outer / batch.mask.sum(axis=1)
    return weights * outer[:, None] * slope


def _exact_slopes(form: Form, batch: Batch) -> Array:
    p, q = (np.exp(batch.log_probs[role]) for role in (form.p, form.q))
    divergence, current = EXACT[form.method], np.exp(batch.log_probs["current"])
    by = divergence.by_p(p, q) * (form.p == "current") + divergence.by_q(p, q) * (
        form.q == "current"
    )
    centered = by - (current * by).sum(axis=-1, keepdims=True)
    return np.where(batch.mask[..., None], current * centered, 0.0)


def _weights(weight: Weight | None, batch: Batch) -> Array:
    """The factor at each token; one where there is none."""
    if weight is None or weight.sampler == "itself":
        return np.ones(batch.mask.shape)
    log_weight = batch.given(weight.target) - batch.given(weight.sampler)
    log_weight = np.where(batch.mask, log_weight, 0.0)
    if weight.span == "prefix":
        log_weight = np.cumsum(log_weight, axis=1)
    elif weight.span != "token":
        total = _united(log_weight, weight.span, batch)
        log_weight = np.broadcast_to(total[:, None], log_weight.shape)
    return np.exp(log_weight)


def _attached(form: Form, terms: Array, batch: Batch) -> Array:
    """What the weight adds to the derivative by each token's current log-prob."""
    weight = form.weight
    if weight is None or weight.attached == "no":
        return np.zeros(batch.mask.shape)
    sign = float(weight.target == "current") - float(weight.sampler == "current")
    if terms.ndim == 1:
        terms = terms[:, None] * (np.arange(batch.mask.shape[1]) == 0)
    if weight.span == "token" or weight.attached == "own":
        return sign * terms
    if weight.span == "prefix":
        return sign * credited(terms, "reward_to_go")
    total = np.broadcast_to(terms.sum(axis=1, keepdims=True), terms.shape)
    return sign * (total / batch.mask.sum(axis=1)[:, None] if weight.span == "average" else total)


def credited(costs: Array, credit: str) -> Array:
    """The cost that each token answers for, [sequences, tokens].

    Example:
        >>> credited(np.array([[1.0, 2.0, 4.0]]), "reward_to_go").tolist()
        [[7.0, 6.0, 4.0]]
    """
    if credit == "full_return":
        return np.broadcast_to(costs.sum(axis=1, keepdims=True), costs.shape)
    to_go = np.cumsum(costs[:, ::-1], axis=1)[:, ::-1]
    return {"reward_to_go": to_go, "future": to_go - costs, "immediate": costs}[credit]
