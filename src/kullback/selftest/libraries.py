"""The formulas and a loss in torch and in JAX, where these are installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial as bound
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from kullback.formulas import k_family
from kullback.formulas.categorical import log_softmax
from kullback.losses import loss
from kullback.selftest.line import ALLOWED, Line, Pairs, attempted, compared
from kullback.selftest.oracles import floats, oracle
from kullback.worlds.tabular import three_tokens

SINGLE = 1e-5  # allowed in single precision


class Library(NamedTuple):
    """How it makes arrays, maps over rows and differentiates; and the error it may have."""

    array: Callable[[Any], Any]
    over_rows: Callable[[Callable[..., Any]], Callable[..., Any]]
    gradient: Callable[[Callable[[Any], Any], Any], Any]
    allowed: float


def libraries() -> tuple[Line, ...]:
    """For each library a line for the formulas and a line for the gradient of a loss."""
    lines = []
    for name in LIBRARIES:
        if find_spec(name) is None:
            lines.append(Line(name, "not-reached", "not installed"))
            continue
        for said in CHECKS:
            title = f"{said} ({name})"
            lines.append(attempted(title, bound(_line, title, name, said)))
    return tuple(lines)


def _line(title: str, name: str, said: str) -> Line:
    library = LIBRARIES[name]()
    return compared(title, CHECKS[said](library), library.allowed)


def _torch() -> Library:
    import torch

    def array(values: Any) -> Any:
        return torch.tensor(np.asarray(values).tolist(), dtype=torch.float64)

    def over_rows(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *rows: torch.stack([function(*row) for row in zip(*rows, strict=True)])

    def gradient(function: Callable[[Any], Any], at: Any) -> Any:
        at = at.requires_grad_()
        return torch.autograd.grad(function(at), at)[0]

    return Library(array, over_rows, gradient, ALLOWED)


def _jax() -> Library:
    import jax
    import jax.numpy as jnp

    def gradient(function: Callable[[Any], Any], at: Any) -> Any:
        return jax.jit(jax.grad(function))(at)

    double = jnp.asarray([1.0]).dtype == np.float64  # where somebody switched that on
    return Library(jnp.asarray, jax.vmap, gradient, ALLOWED if double else SINGLE)


def _values(library: Library) -> Pairs:
    told = oracle("c_four_faces")
    log_r = library.array(np.log(floats(told["q2"]) / floats(told["p"])))
    for name in ("k1", "k2", "k3"):
        found = getattr(k_family, name)(log_r).tolist()
        yield found, [outcome[name] for outcome in told["per_outcome"]]


def _gradient(library: Library) -> Pairs:
    """Of KL(p||q) of the sequences in the logits of p: the mean over all that p can draw."""
    world = three_tokens(ends=True)
    _, tokens, context, alive = world.tree
    log_q, drawn = world.by_token("reference"), world.probability("current")

    def of_sequence(log_p: Any, log_q: Any, mask: Any) -> Any:
        return loss.loss(
            log_p=log_p[None],
            log_q=log_q[None],
            mask=mask[None],
            aggregate="sequence_sum",
            gradient="sequence",
        )

    def mean(logits: Any) -> Any:
        log_p = log_softmax(logits)[context, tokens]
        each = library.over_rows(of_sequence)(log_p, library.array(log_q), library.array(alive))
        return (library.array(drawn) * each).sum()

    found = library.gradient(mean, library.array(world.log_probs["current"]))
    told = oracle("d_tabular_autoregressive")["eos"]
    yield np.ravel(found.tolist()), told["exact_gradients"]["grad_KL_pi_ref"]


LIBRARIES: dict[str, Callable[[], Library]] = {"torch": _torch, "jax": _jax}
CHECKS: dict[str, Callable[[Library], Pairs]] = {
    "k1 to k3": _values,
    "kb.loss gradient": _gradient,
}
