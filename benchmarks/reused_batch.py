"""PPO on one batch: where does each stop rule stop, and how large is the exact KL there?

    python benchmarks/reused_batch.py [--runs 300]

A softmax policy, linear in 24 features of prompt and position, 16 actions; 16 or 64 prompts with 4
completions of 8 tokens; the reward of an action is linear in the features, plus noise per
completion; advantages are those of GRPO (against the mean of the prompt's completions, over their
deviation). PPO's clipped loss (0.2) and Adam, 10 epochs of 8 minibatches. All 80 steps are run, and
each rule then says where it would have stopped, looking before each step: so one run shows every
rule. The exact KL(old‖current) is the mean over 1024 prompts of the sum over all actions. Since the
batch is trained on, k3 on it is in-sample; held-out prompts are drawn like the batch and not
trained on. The limit is 0.015 nats per token.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import kullback as kb
from kullback.formulas.categorical import log_softmax

RESULTS = Path(__file__).parent.parent / "results" / "reused_batch.json"
FEATURES, ACTIONS, POSITIONS, COMPLETIONS, POPULATION = 24, 16, 8, 4, 1024
EPOCHS, MINIBATCHES, CLIP, RATE, LIMIT, ALPHA = 10, 8, 0.2, 0.05, 0.015, 0.05
STEPS = EPOCHS * MINIBATCHES
TOKENS = COMPLETIONS * POSITIONS  # of a prompt


@dataclass(frozen=True)
class Batch:
    """Prompts with their sampled actions: features [prompts, 1, positions, features], and so on."""

    features: np.ndarray
    actions: np.ndarray  # [prompts, completions, positions]
    advantages: np.ndarray  # [prompts, completions, 1]
    log_old: np.ndarray  # [prompts, completions, positions]

    def log_probs(self, weights: np.ndarray) -> np.ndarray:
        """Log-probs of the sampled actions under a policy, [prompts, completions, positions]."""
        rows = np.broadcast_to(log_softmax(self.features @ weights), (*self.actions.shape, ACTIONS))
        return np.take_along_axis(rows, self.actions[..., None], axis=-1)[..., 0]


def population(rng: np.random.Generator) -> np.ndarray:
    """Features of all prompts, about unit length, [prompts, positions, features]."""
    prompt = rng.standard_normal((POPULATION, 1, FEATURES))
    own = rng.standard_normal((POPULATION, POSITIONS, FEATURES))
    return (prompt + own) / np.sqrt(2 * FEATURES)


def sampled(
    rng: np.random.Generator, features: np.ndarray, old: np.ndarray, good: np.ndarray
) -> Batch:
    """Completions of some prompts, with GRPO's advantages."""
    chance = log_softmax(features @ old)[:, None]
    noise = rng.gumbel(size=(len(features), COMPLETIONS, POSITIONS, ACTIONS))
    actions = (chance + noise).argmax(axis=-1)
    worth = np.broadcast_to((features @ good)[:, None], noise.shape)
    gains = np.take_along_axis(worth, actions[..., None], axis=-1)[..., 0].mean(axis=-1)
    rewards = gains + rng.standard_normal(gains.shape)
    advantages = rewards - rewards.mean(axis=1, keepdims=True)
    advantages /= rewards.std(axis=1, keepdims=True) + 1e-6
    batch = Batch(features[:, None], actions, advantages[..., None], np.zeros(actions.shape))
    return Batch(batch.features, actions, batch.advantages, batch.log_probs(old))


def gradient(batch: Batch, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of PPO's clipped loss over some completions, [features, actions]; to be descended."""
    prompt, completion = np.divmod(rows, COMPLETIONS)
    features = batch.features[prompt, 0]
    actions, gain = batch.actions[prompt, completion], batch.advantages[prompt, completion]
    log_p = log_softmax(features @ weights)
    own = np.take_along_axis(log_p, actions[..., None], axis=-1)[..., 0]
    ratio = np.exp(own - batch.log_old[prompt, completion])
    clipped = np.where(gain > 0, ratio > 1 + CLIP, ratio < 1 - CLIP)
    push = np.where(clipped, 0.0, ratio * gain) / actions.size
    toward = (np.arange(ACTIONS) == actions[..., None]) - np.exp(log_p)
    return -np.einsum("spf,sp,spa->fa", features, push, toward)


def trained(
    rng: np.random.Generator, batch: Batch, old: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Before each step: the weights, and the completions that it will take."""
    weights, first, second = old.copy(), np.zeros_like(old), np.zeros_like(old)
    count = batch.advantages.size
    for step in range(STEPS):
        if step % MINIBATCHES == 0:
            order = rng.permutation(count).reshape(MINIBATCHES, -1)
        rows = order[step % MINIBATCHES]
        yield weights.copy(), rows
        slope = gradient(batch, rows, weights)
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        bias = 1 - 0.9 ** (step + 1), 1 - 0.999 ** (step + 1)
        weights -= RATE * first / bias[0] / (np.sqrt(second / bias[1]) + 1e-8)


def sums(batch: Batch, weights: np.ndarray) -> kb.PromptSums:
    """What the evidence takes of a batch."""
    shape = (-1, POSITIONS)
    return kb.prompt_sums(
        log_p=batch.log_old.reshape(shape),
        log_q=batch.log_probs(weights).reshape(shape),
        clusters=np.repeat(np.arange(len(batch.actions)), COMPLETIONS),
    )


@dataclass(frozen=True)
class Looks:
    """What can be seen before each step, and what is true there."""

    exact: np.ndarray  # KL over all prompts, [steps]
    exact_here: np.ndarray  # over the prompts of the batch
    mini_k1: np.ndarray
    mini_k3: np.ndarray
    batch_k1: np.ndarray
    batch_k3: np.ndarray
    low: np.ndarray  # of the clustered interval around k3
    batch: list[kb.PromptSums]
    held_out: Mapping[int, list[kb.PromptSums]]  # by number of prompts


def watched(rng: np.random.Generator, prompts: int) -> Looks:
    """One run of all steps."""
    features = population(rng)
    old = 2 * rng.standard_normal((FEATURES, ACTIONS))
    good = rng.standard_normal((FEATURES, ACTIONS))
    chosen = rng.permutation(POPULATION)
    here, others = chosen[:prompts], {n: chosen[-n:] for n in (16, 64)}
    batch = sampled(rng, features[here], old, good)
    held = {n: sampled(rng, features[ids], old, good) for n, ids in others.items()}
    log_old = log_softmax(features @ old)
    rows: list[tuple[float, ...]] = []
    seen: list[kb.PromptSums] = []
    out: dict[int, list[kb.PromptSums]] = {n: [] for n in held}
    for weights, mini in trained(rng, batch, old):
        kl = kb.exact(log_probs_p=log_old, logits_q=features @ weights).mean(axis=1)
        log_r = (batch.log_probs(weights) - batch.log_old).reshape(-1, POSITIONS)
        k1, k3 = kb.k1(log_r), kb.k3(log_r)
        e = kb.estimate(
            log_p=batch.log_old.reshape(-1, POSITIONS),
            log_q=log_r + batch.log_old.reshape(-1, POSITIONS),
            clusters=np.repeat(np.arange(prompts), COMPLETIONS),
            method="k3",
            in_sample=True,
        )
        means = k1[mini].mean(), k3[mini].mean(), k1.mean(), k3.mean()
        rows.append((kl.mean(), kl[here].mean(), *means, e.low))
        seen.append(sums(batch, weights))
        for n, fresh in held.items():
            out[n].append(sums(fresh, weights))
    return Looks(*np.array(rows).T, seen, out)


def each_step(alarms: np.ndarray) -> int | None:
    """The first step before which there is an alarm."""
    return int(alarms.argmax()) if alarms.any() else None


def epoch_ends(alarms: np.ndarray) -> int | None:
    """The same, looked at only behind the last minibatch of an epoch."""
    return each_step(alarms & (np.arange(STEPS) % MINIBATCHES == MINIBATCHES - 1))


def decided(looks: list[kb.PromptSums], *, every: int = 1, in_sample: bool = False) -> np.ndarray:
    """Evidence anew at every look; alarms at the steps that are looked at."""
    start = kb.Evidence(limit=LIMIT, most_tokens=TOKENS, in_sample=in_sample)
    number = STEPS // every
    return np.array(
        [
            step % every == every - 1 and start.update(one).decided(ALPHA, states=number)
            for step, one in enumerate(looks)
        ]
    )


def accumulated(looks: list[kb.PromptSums]) -> np.ndarray:
    """Evidence carried over the steps (what it is not for)."""
    state, alarms = kb.Evidence(limit=LIMIT, most_tokens=TOKENS, in_sample=True), []
    for one in looks:
        state = state.update(one)
        alarms.append(state.decided(ALPHA))
    return np.array(alarms)


Rule = Callable[[Looks], "int | None"]
RULES: Mapping[str, Rule] = {
    "minibatch k1 > limit": lambda s: each_step(s.mini_k1 > LIMIT),
    "minibatch k3 > limit": lambda s: each_step(s.mini_k3 > LIMIT),
    "minibatch k3 > 1.5 limit": lambda s: each_step(s.mini_k3 > 1.5 * LIMIT),
    "last minibatch k3 > limit": lambda s: epoch_ends(s.mini_k3 > LIMIT),
    "batch k1 > 1.5 limit": lambda s: each_step(s.batch_k1 > 1.5 * LIMIT),
    "batch k3 > limit": lambda s: each_step(s.batch_k3 > LIMIT),
    "interval of the batch > limit": lambda s: each_step(s.low > LIMIT),
    "evidence, each step": lambda s: each_step(decided(s.batch, in_sample=True)),
    "evidence, each epoch": lambda s: each_step(
        decided(s.batch, every=MINIBATCHES, in_sample=True)
    ),
    "evidence, 16 held-out prompts, each epoch": lambda s: each_step(
        decided(s.held_out[16], every=MINIBATCHES)
    ),
    "evidence, 64 held-out prompts, each epoch": lambda s: each_step(
        decided(s.held_out[64], every=MINIBATCHES)
    ),
    "evidence carried over steps": lambda s: each_step(accumulated(s.batch)),
}


def measure(prompts: int, runs: int) -> dict:
    """Where each rule stops, over the runs; and how far off the batch's k1 and k3 are."""
    stops: dict[str, list[tuple[float, float]]] = {rule: [] for rule in RULES}
    bias = {"k1": [], "k3": [], "held-out k3": [], "these prompts": []}
    ends = []
    for run in range(runs):
        looks = watched(np.random.default_rng([prompts, run]), prompts)
        ends.append(looks.exact[-1] / LIMIT)
        crossing = int((looks.exact > LIMIT).argmax()) or STEPS - 1
        bias["k1"].append(looks.batch_k1[crossing] / looks.exact[crossing])
        bias["k3"].append(looks.batch_k3[crossing] / looks.exact[crossing])
        bias["these prompts"].append(looks.exact_here[crossing] / looks.exact[crossing])
        fresh = looks.held_out[64][crossing]
        bias["held-out k3"].append(fresh.k3.sum() / fresh.tokens.sum() / looks.exact[crossing])
        for rule, stop in RULES.items():
            at = stop(looks)
            if at is not None:
                stops[rule].append((looks.exact[at] / LIMIT, looks.exact_here[at] / LIMIT))
    told = {rule: told_of(np.array(found).reshape(-1, 2)) for rule, found in stops.items()}
    return {
        "prompts": prompts,
        "exact_at_the_end": rounded(np.quantile(ends, [0.1, 0.5, 0.9])),
        "over_the_exact_kl_where_it_crosses_the_limit": {
            name: {"mean": round(float(np.mean(x)), 3), "deviation": round(float(np.std(x)), 3)}
            for name, x in bias.items()
        },
        "rules": told,
    }


def told_of(found: np.ndarray) -> dict:
    """Of the stops of a rule: exact KL over the limit, and how many came below the limit."""
    if not len(found):
        return {"stops": 0, "too_early": 0, "too_early_here": 0, "exact_over_limit": None}
    early, early_here = (found < 1).sum(axis=0)
    return {
        "stops": len(found),
        "too_early": int(early),
        "too_early_here": int(early_here),
        "exact_over_limit": rounded(np.quantile(found[:, 0], [0.1, 0.5, 0.9])),
    }


def rounded(x: np.ndarray) -> list[float]:
    """Three digits behind the point."""
    return [round(float(one), 3) for one in x]


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    result = {
        "command": f"benchmarks/reused_batch.py --runs {runs}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kullback": kb.__version__,
        "seed": "the number of prompts and of the run",
        "limit": LIMIT,
        "steps": STEPS,
        "runs": runs,
        "cells": [measure(prompts, runs) for prompts in (16, 64)],
    }
    for cell in result["cells"]:
        print(json.dumps(cell, indent=1))
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
