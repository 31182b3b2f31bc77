"""How often is "the KL is above the limit" said in 100 looks, falsely and rightly, by which rule?

    python benchmarks/looks.py [--runs 400]

Each look is a fresh batch of 16 or 64 prompts at a fixed pair of policies whose KL per token is
known exactly. The limit is that KL divided by ``over``: at 1 and below every alarm is false. A
prompt has 4 completions of 32 tokens (in "random lengths" up to 64, ending with probability 0.05
at each token); the KL of a prompt is log-normal with the given σ. A minibatch is a quarter of the
prompts of a look. The same draws serve every rule and every ``over``. Seeds are the number of the
run; the binomial error of 0.05 with 400 runs is 0.011.

``changes``: the KL is half the limit for 50 looks, then twice the limit; how many looks after the
change is it said?
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np

import kullback as kb
from kullback.estimation.interval import ratio_interval
from kullback.worlds.tables import drifted, ending, holed, zipf

RESULTS = Path(__file__).parent.parent / "results" / "looks.json"
LOOKS, ALPHA, MINIBATCHES, BLOCK = 100, 0.05, 4, 10
OVERS = (0.8, 1.0, 1.25, 1.5, 2.0, 4.0)
QUESTION = kb.Question("rollout", "reference")


@dataclass(frozen=True)
class Batches:
    """Sums by look and prompt, [looks, prompts]; a state of every rule is made of these."""

    k1: np.ndarray
    k3: np.ndarray
    tokens: np.ndarray
    most_tokens: int
    by_token: list[np.ndarray]  # k3 of each token, by look, for the rule that bets on tokens

    def minibatches(self, term: str) -> np.ndarray:
        """The token mean of each minibatch, [looks, minibatches]."""
        above, below = (x.reshape(LOOKS, MINIBATCHES, -1).sum(axis=2) for x in self._ratio(term))
        return above / below

    def mean(self, term: str) -> np.ndarray:
        """The token mean of each look, [looks]."""
        above, below = (x.sum(axis=1) for x in self._ratio(term))
        return above / below

    def _ratio(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        return getattr(self, term), self.tokens

    def sums(self, look: int) -> kb.PromptSums:
        """What the evidence takes of a look."""
        prompts = self.k3.shape[1]
        return kb.PromptSums.of_ids(
            np.arange(look * prompts, (look + 1) * prompts),
            k3=self.k3[look],
            tokens=self.tokens[look],
        )


def any_minibatch_k1(b: Batches, limit: float) -> np.ndarray:
    """A minibatch's mean of k1 is above the limit."""
    return b.minibatches("k1").max(axis=1) > limit


def any_minibatch_k3(b: Batches, limit: float) -> np.ndarray:
    """A minibatch's mean of k3 is above the limit."""
    return b.minibatches("k3").max(axis=1) > limit


def any_minibatch_k3_by_half(b: Batches, limit: float) -> np.ndarray:
    """A minibatch's mean of k3 is above 1.5 limits (Stable-Baselines3)."""
    return b.minibatches("k3").max(axis=1) > 1.5 * limit


def last_minibatch_k3(b: Batches, limit: float) -> np.ndarray:
    """The last minibatch's mean of k3 is above the limit (CleanRL)."""
    return b.minibatches("k3")[:, -1] > limit


def batch_k1_by_half(b: Batches, limit: float) -> np.ndarray:
    """The batch's mean of k1 is above 1.5 limits (Spinning Up)."""
    return b.mean("k1") > 1.5 * limit


def batch_interval(b: Batches, limit: float) -> np.ndarray:
    """The clustered 95 % interval of this look, around k3, is above the limit."""
    return np.array([_low(k3, t, 0.95) > limit for k3, t in zip(b.k3, b.tokens, strict=True)])


def running_z(b: Batches, limit: float) -> np.ndarray:
    """One-sided 5 % test, clustered, of all looks so far, made at every look."""
    k3, tokens = b.k3.ravel(), b.tokens.ravel()
    ends = (np.arange(LOOKS) + 1) * b.k3.shape[1]
    return np.array([_low(k3[:end], tokens[:end], 0.90) > limit for end in ends])


def _low(k3: np.ndarray, tokens: np.ndarray, confidence: float) -> float:
    effective = tokens.sum() ** 2 / (tokens.astype(float) ** 2).sum()
    return ratio_interval(k3, tokens, effective=effective, confidence=confidence).low


def per_token(b: Batches, limit: float) -> np.ndarray:
    """The same bet with a factor per token instead of one per prompt (invalid)."""
    state, said = kb.Evidence(limit=limit, most_tokens=1), []
    for k3 in b.by_token:
        sums = kb.PromptSums(np.arange(len(k3), dtype=np.uint64), k3, np.ones(len(k3), dtype=int))
        state = state.update(sums)
        said.append(state.decided(ALPHA))
    return np.array(said)


def evidence(b: Batches, limit: float, start: int = 0) -> np.ndarray:
    """`Evidence`, one state through all looks."""
    state, said = kb.Evidence(limit=limit, most_tokens=b.most_tokens), [False] * start
    for look in range(start, LOOKS):
        state = state.update(b.sums(look))
        said.append(state.decided(ALPHA))
    return np.array(said)


def evidence_in_blocks(b: Batches, limit: float) -> np.ndarray:
    """`Evidence`, anew every 10 looks, with states=10."""
    start = state = kb.Evidence(limit=limit, most_tokens=b.most_tokens)
    said = []
    for look in range(LOOKS):
        state = (start if look % BLOCK == 0 else state).update(b.sums(look))
        said.append(state.decided(ALPHA, states=LOOKS // BLOCK))
    return np.array(said)


def evidence_per_look(b: Batches, limit: float) -> np.ndarray:
    """`Evidence`, anew at every look, with states=100."""
    start = kb.Evidence(limit=limit, most_tokens=b.most_tokens)
    states = [start.update(b.sums(look)) for look in range(LOOKS)]
    return np.array([state.decided(ALPHA, states=LOOKS) for state in states])


Rule = Callable[[Batches, float], np.ndarray]  # batches and a limit to an alarm per look
RULES: Mapping[str, Rule] = {
    "minibatch k1 > limit": any_minibatch_k1,
    "minibatch k3 > limit": any_minibatch_k3,
    "minibatch k3 > 1.5 limit": any_minibatch_k3_by_half,
    "last minibatch k3 > limit": last_minibatch_k3,
    "batch k1 > 1.5 limit": batch_k1_by_half,
    "interval of the batch > limit": batch_interval,
    "running z": running_z,
    "bet per token": per_token,
    "evidence": evidence,
    "evidence, anew every 10 looks": evidence_in_blocks,
    "evidence, anew every look": evidence_per_look,
}


def worlds() -> Iterator[tuple[str, kb.worlds.World]]:
    """The worlds by name; of each, prompts are what a run asks for."""
    normals = {"rollout": (0.0, 1.0), "reference": (0.2, 1.0)}
    yield "normal actions", kb.worlds.Gaussian(normals, length=128)
    rng = np.random.default_rng(0)
    policy = zipf(rng, contexts=256, alphabet=1000)
    for name, sigma in (("alike", 0.0), ("effects 0.6", 0.6), ("effects 1.2", 1.2)):
        tables = {"rollout": policy, "reference": drifted(rng, policy, sizes(0.2, sigma))}
        yield name, kb.worlds.Mixture(tables, sequences_per_prompt=4, max_length=32, kinds=32)
    ends = {role: ending(table, 0.05) for role, table in tables.items()}
    random = kb.worlds.Mixture(ends, sequences_per_prompt=4, max_length=64, kinds=32, ends=True)
    yield "effects 1.2, random lengths", random
    tables = {"rollout": holed(rng, policy), "reference": drifted(rng, policy, 0.05)}
    yield "holes", kb.worlds.Mixture(tables, sequences_per_prompt=4, max_length=32)


def sizes(size: float, sigma: float) -> np.ndarray:
    """Drift of 256 contexts in 32 kinds: log KL, which goes with size², is normal over kinds."""
    quantiles = [NormalDist(0.0, 1.0).inv_cdf((kind + 0.5) / 32) for kind in range(32)]
    return size * np.repeat(np.exp(sigma / 2 * np.array(quantiles)), 8)[:, None]


def draw(world: kb.worlds.World, prompts: int, rng: np.random.Generator) -> Batches:
    """All looks of a run."""
    if isinstance(world, kb.worlds.Gaussian):
        columns = replace(world, sequences=LOOKS * prompts).sample(rng)
        lengths, log_p, log_q = (columns.lengths, *columns.log_probs.values())
        per_prompt = 1
    else:
        drawn = replace(world, prompts=LOOKS * prompts).draw(rng, world.log_probs["rollout"])
        lengths, per_prompt = drawn.lengths, world.sequences_per_prompt
        log_p, log_q = (t[drawn.contexts, drawn.tokens] for t in world.log_probs.values())
    tokens = lengths.reshape(-1, per_prompt).sum(axis=1)
    starts = np.cumsum(tokens) - tokens
    k1, k3 = kb.k1(log_q - log_p), kb.k3(log_q - log_p)
    cuts = starts.reshape(LOOKS, prompts)[1:, 0]
    most = world.length if per_prompt == 1 else per_prompt * world.max_length
    shape = (LOOKS, prompts)
    sums = [np.add.reduceat(x, starts).reshape(shape) for x in (k1, k3)]
    return Batches(*sums, tokens.reshape(shape), int(most), np.split(k3, cuts))


def measure(name: str, world: kb.worlds.World, prompts: int, runs: int) -> Iterator[dict]:
    """The cells of a world: for each rule the share of runs with an alarm, and when it came."""
    kl = world.exact(QUESTION)
    first: dict[tuple[float, str], list[int]] = {(o, r): [] for o in OVERS for r in RULES}
    for run in range(runs):
        batches = draw(
            world, prompts, np.random.default_rng([zlib.crc32(name.encode()), prompts, run])
        )
        for over, rule in first:
            if rule == "bet per token" and over != 1.0:
                continue  # it is there for its false alarms
            said = RULES[rule](batches, kl / over)
            if said.any():
                first[over, rule].append(int(said.argmax()) + 1)
    for over in OVERS:
        rules = {
            rule: summary(first[over, rule], runs)
            for rule in RULES
            if rule != "bet per token" or over == 1.0
        }
        yield {"world": name, "prompts": prompts, "kl": kl, "over": over, "rules": rules}


def summary(first: list[int], runs: int) -> dict:
    """The share of runs with an alarm; the median look of the first one, null if most had none."""
    looks = np.sort([*first, *[np.inf] * (runs - len(first))])
    median = looks[(runs - 1) // 2]
    return {"alarms": len(first), "median_look": int(median) if np.isfinite(median) else None}


def changes(prompts: int, runs: int) -> dict:
    """Looks from the change to the alarm, in normal actions; alarms before it are false."""
    limit, change = 0.02, LOOKS // 2
    rules: Mapping[str, Rule] = {
        "evidence": evidence,
        "evidence, from the change on": lambda b, at: evidence(b, at, start=change),
        "evidence, anew every 10 looks": evidence_in_blocks,
        "evidence, anew every look": evidence_per_look,
    }
    found: dict[str, list[float]] = {rule: [] for rule in rules}
    for run in range(runs):
        rng = np.random.default_rng([1, prompts, run])
        halves = [
            draw(
                kb.worlds.Gaussian({"rollout": (0.0, 1.0), "reference": (m, 1.0)}, length=128),
                prompts,
                rng,
            )
            for m in np.sqrt([limit, 4 * limit])  # KL = m² / 2
        ]
        both = joined(*halves, change)
        for rule, says in rules.items():
            said = says(both, limit)
            found[rule].append(said.argmax() + 1 - change if said.any() else np.inf)
    rows = {}
    for rule, delays in found.items():
        median = float(np.sort(delays)[(runs - 1) // 2])
        rows[rule] = {
            "false": int(sum(d <= 0 for d in delays)),
            "missed": int(sum(d == np.inf for d in delays)),
            "median_looks_after": int(median) if np.isfinite(median) else None,
        }
    return {"prompts": prompts, "rules": rows}


def joined(before: Batches, after: Batches, change: int) -> Batches:
    """The looks of one up to the change, of the other from it on."""
    k1, k3, tokens = (
        np.concatenate([getattr(before, x)[:change], getattr(after, x)[change:]])
        for x in ("k1", "k3", "tokens")
    )
    return Batches(k1, k3, tokens, before.most_tokens, [])


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    cells, begun = [], time.time()
    for name, world in worlds():
        for prompts in (16, 64):
            cells += measure(name, world, prompts, runs)
            at_limit = next(c for c in cells[-len(OVERS) :] if c["over"] == 1.0)
            shares = {rule: one["alarms"] / runs for rule, one in at_limit["rules"].items()}
            sys.stderr.write(f"{time.time() - begun:.0f} s {name}, {prompts}: {shares}\n")
    result = {
        "command": f"benchmarks/looks.py --runs {runs}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kullback": kb.__version__,
        "seed": "the number of the run",
        "looks": LOOKS,
        "runs": runs,
        "cells": cells,
        "changes": [changes(prompts, runs) for prompts in (16, 64)],
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
