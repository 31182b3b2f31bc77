"""Tables of next-token distributions, [contexts, alphabet]: how they are made, and altered."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.formulas.categorical import log_softmax

Table = NDArray[np.float64]  # log-probs, nats; one row per context


def zipf(
    rng: np.random.Generator,
    *,
    contexts: int = 256,
    alphabet: int = 2000,
    exponents: tuple[float, float] = (0.9, 2.5),
) -> Table:
    """Zipf distributions, p(rank) ∝ rank^−a, each with its own exponent and order of the tokens.

    The exponents are uniform: a prefix of a language model is nearly certain (a = 2.5, 1 nat) or
    wide open (a = 0.9, 6 nats).
    """
    exponent = rng.uniform(*exponents, size=(contexts, 1))
    return log_softmax(rng.permuted(-exponent * np.log(np.arange(1, alphabet + 1)), axis=1))


def drifted(rng: np.random.Generator, log_p: Table, size: ArrayLike) -> Table:
    """A policy that moved smoothly: q ∝ p · exp(size · z) with z normal.

    KL is about size²/2 either way, and k3 is the better estimator.
    """
    return log_softmax(log_p + np.asarray(size) * rng.standard_normal(log_p.shape))


def holed(
    rng: np.random.Generator,
    log_p: Table,
    *,
    share: float = 0.03,
    depths: tuple[float, float] = (3.0, 12.0),
    below: float = 1.0,
) -> Table:
    """A policy that nearly forbids some tokens: a share of them falls by e^−3 to e^−12.

    Args:
        rng: Chooses the tokens and the depths.
        log_p: The table before, [contexts, alphabet].
        share: The share of the tokens that fall.
        depths: The fall is uniform between these, in nats.
        below: Only tokens of at most this probability fall.
    """
    falls = (rng.random(log_p.shape) < share) & (log_p <= np.log(below))
    return log_softmax(np.where(falls, log_p - rng.uniform(*depths, size=log_p.shape), log_p))


def tempered(log_p: Table, temperature: float) -> Table:
    """The policy at a temperature: p^(1/T), normalized."""
    return log_softmax(log_p / temperature)


def peaked(log_p: Table, mass: ArrayLike) -> Table:
    """The likeliest token of each context gets this mass, the others share the rest as before."""
    mass, first = np.asarray(mass), log_p.max(axis=-1, keepdims=True)
    is_first = np.arange(log_p.shape[-1]) == log_p.argmax(axis=-1)[..., None]
    return np.where(is_first, np.log(mass), log_p + np.log1p(-mass) - np.log1p(-np.exp(first)))


def ending(log_p: Table, probability: float) -> Table:
    """The policy that ends its sequence with this probability at every token: id 0 is the end."""
    end = np.full((*log_p.shape[:-1], 1), np.log(probability))
    return np.concatenate([end, log_p + np.log1p(-probability)], axis=-1)


def kept_top_k(log_p: Table, k: int) -> Table:
    """Top-k sampling: the k likeliest tokens, normalized; the others are impossible."""
    return _kept(log_p, _rank(log_p) < k)


def kept_top_p(log_p: Table, p: float) -> Table:
    """Top-p sampling: the fewest likeliest tokens whose mass reaches p, normalized."""
    order = np.argsort(-log_p, axis=-1, kind="stable")
    sorted_probs = np.exp(np.take_along_axis(log_p, order, axis=-1))
    mass_before = np.cumsum(sorted_probs, axis=-1) - sorted_probs
    return _kept(log_p, _rank(log_p) < (mass_before < p - 1e-12).sum(axis=-1, keepdims=True))


def _rank(log_p: Table) -> NDArray[np.int64]:
    order = np.argsort(-log_p, axis=-1, kind="stable")
    return np.argsort(order, axis=-1)


def _kept(log_p: Table, kept: NDArray[np.bool_]) -> Table:
    mass = np.where(kept, np.exp(log_p), 0.0).sum(axis=-1, keepdims=True)
    return np.where(kept, log_p - np.log(mass), -np.inf)


def head(log_p: Table, k: int) -> tuple[NDArray[np.int64], Table]:
    """Ids and log-probs of the k likeliest tokens of each context, the likeliest first."""
    ids = np.argpartition(-log_p, k, axis=-1)[..., :k]
    ids = np.take_along_axis(ids, np.argsort(-np.take_along_axis(log_p, ids, -1), axis=-1), -1)
    return ids, np.take_along_axis(log_p, ids, axis=-1)
