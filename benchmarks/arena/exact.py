"""The exact error of a token mean by k1 or k3, from the moments of its world, by recursion.

With x the term of a token (k1 or k3, weighed if a third policy sampled) and μ the KL, the error of
the ratio Σ x / Σ 1 over C prompts is, to first order, Var(Z) / (C E[N]²), where Z sums x − μ over a
prompt and N counts its tokens. A sequence of at most k tokens has Z_k = y + 1{goes on} Z_{k−1} with
y = x − μ, so that

    E Z_k  = E y + g E Z_{k−1},
    E Z_k² = E y² + 2 E[y 1{goes on}] E Z_{k−1} + g E Z_{k−1}²,    g = P(goes on),

and sequences of a prompt share its kind alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from recorded import Recorded

import kullback as kb
from kullback.worlds.gaussian import Gaussian
from kullback.worlds.mixture import Mixture


def error(world: Mixture | Gaussian | Recorded, question: kb.Question, method: str) -> float:
    """The root mean squared error of the token mean by k1 or k3, in nats; may be infinite."""
    if isinstance(world, Recorded):
        return world.error(method)
    if isinstance(world, Gaussian):
        return _of_normals(world, question, method)
    return _of_mixture(world, question, method)


def _of_mixture(world: Mixture, question: kb.Question, method: str) -> float:
    p, q, s = (world.log_probs[role] for role in (question.p, question.q, question.sampler))
    y = _term(p, q, s, method) - world.exact(question)
    drawn = np.exp(s)
    goes_on = np.ones_like(drawn)
    if world.ends:
        goes_on[:, 0] = 0.0

    def by_kind(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return (drawn * values).sum(axis=1).reshape(world.kinds, -1).mean(axis=1)

    mean, square, carried, stays = (by_kind(values) for values in (y, y * y, y * goes_on, goes_on))
    first = second = np.zeros(world.kinds)
    for _ in range(world.max_length):
        second = square + 2 * carried * first + stays * second
        first = mean + stays * first
    each = world.sequences_per_prompt
    of_prompt = each * second + each * (each - 1) * first**2
    tokens = each * world.expected_lengths(question.sampler).mean()
    return math.sqrt(of_prompt.mean() / world.prompts) / tokens


def _term(
    p: NDArray[np.float64], q: NDArray[np.float64], s: NDArray[np.float64], method: str
) -> NDArray[np.float64]:
    term = kb.k1(q - p) if method == "k1" else kb.k3(q - p)
    return np.exp(p - s) * term


def _of_normals(world: Gaussian, question: kb.Question, method: str) -> float:
    """Of independent samples: Var / n, by sums on a grid, exact to rounding where all is smooth."""
    (mean, deviation), (mean_q, deviation_q) = (
        world.normals[role] for role in (question.p, question.q)
    )
    # E r² is finite where the square of q, divided by p, falls: σ_q² < 2 σ_p².
    if method == "k3" and deviation_q**2 >= 2 * deviation**2:
        return math.inf
    # r² p has its mass about a point that may lie far out: take both normals in.
    reach = 14 * max(deviation, deviation_q) + 4 * abs(mean - mean_q)
    x, step = np.linspace(mean - reach, mean + reach, 100_001, retstep=True)
    log_p, log_q = (
        -0.5 * ((x - m) / d) ** 2 - math.log(d) - 0.5 * math.log(2 * math.pi)
        for m, d in ((mean, deviation), (mean_q, deviation_q))
    )
    term = kb.k1(log_q - log_p) if method == "k1" else kb.k3(log_q - log_p)
    y = term - world.exact(question)
    variance = float(step * (np.exp(log_p) * y * y).sum())
    return math.sqrt(variance / (world.sequences * world.length))
