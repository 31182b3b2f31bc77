"""Cases about sequences of another policy: which weight, and what no weight shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import kullback as kb

from .entries import Input, Table, log

ROLES = ("old", "policy", "reference")


def tables(x: Input) -> dict[str, NDArray[np.float64]]:
    """The tokens of a language of two steps, after nothing, 0 and 1, by role."""
    return {role: log([x[role]["step1"], *x[role]["step2_given_first_token"]]) for role in ROLES}


def language(x: Input) -> kb.worlds.Tabular:
    return kb.worlds.Tabular(tables(x), sampler=x["sampler"], max_length=2)


def estimated(x: Input, method: str, *, weight: str) -> float:
    """From each sequence as often as its probability says; with no, the token's or all weights."""
    world = language(x)
    times = np.rint(x["draws"] * world.probability(x["sampler"])).astype(np.int64)
    old, policy, reference = (np.repeat(world.by_token(role), times, axis=0) for role in ROLES)
    more: dict[str, Any] = {} if weight == "none" else {"log_sampler": old}
    if weight == "prefix":
        more["prefixes"] = "p"
    return kb.estimate(
        log_p=policy, log_q=reference, level="sequence_sum", method=method, **more
    ).mean


def mean_weight(x: Input) -> float:
    world = language(x)
    log_weight = world.by_token("policy") - world.by_token(x["sampler"])
    return world.mean(np.exp(log_weight.sum(axis=1)), by=x["sampler"])


# 81


def exact(x: Input) -> float:
    """The KL of a step far out, as often as the new policy stands there."""
    there, visits = np.eye(x["far"] + 1)[0], 0.0
    for _ in range(x["steps"]):
        visits += there[-1]
        on = there * np.where(np.arange(len(there)) == x["far"], x["stays"], 0.5)
        there = np.concatenate([[1 - on.sum()], on[:-2], [on[-2] + on[-1]]])
    return visits * kb.divergence([x["stays"], 1 - x["stays"]], [0.5, 0.5])


def walked(x: Input) -> kb.Estimate:
    """What the walks of the old policy say of the new one at its own places."""
    rng, far = np.random.default_rng(x["seed"]), np.zeros(x["walks"], dtype=np.int64)
    new = np.empty((x["walks"], x["steps"]))
    for step in range(x["steps"]):
        on = rng.random(x["walks"]) < 0.5
        chance = np.where(far == x["far"], x["stays"], 0.5)
        new[:, step] = np.log(np.where(on, chance, 1 - chance))
        far = np.where(on, np.minimum(far + 1, x["far"]), 0)
    old = np.full(new.shape, np.log(0.5))
    return kb.estimate(
        log_p=new, log_q=old, log_sampler=old, prefixes="p", level="sequence_sum", method="k1"
    )


def holds(x: Input) -> bool:
    found = walked(x)
    return found.low <= exact(x) <= found.high


WEIGHED: Table = {
    "80-no-token-or-prefix-weight": {
        "exact_sequence_kl": lambda x: language(x).exact("KL(policy||reference) per sequence"),
        "expected_k3_unweighted": lambda x: estimated(x, "k3", weight="none"),
        "expected_k3_token_weight": lambda x: estimated(x, "k3", weight="token"),
        "expected_k3_prefix_weight": lambda x: estimated(x, "k3", weight="prefix"),
        "expected_k1_prefix_weight": lambda x: estimated(x, "k1", weight="prefix"),
        "mean_weight_of_a_sequence": mean_weight,
    },
    "81-states-that-were-hardly-visited": {
        "exact_kl_new_old": exact,
        "interval_holds": holds,
        "verdict": lambda x: walked(x).marks,
    },
}
