"""Logs as a trainer would have written them in a case, and what is found in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kullback as kb
from kullback.columns import TopK

from .entries import Input, log


def found_in(columns: kb.Columns) -> dict[str, kb.Finding]:
    """The findings of a report, by code."""
    return {one.code: one for one in kb.diagnose(kb.summarize([columns])).findings}


def codes(columns: kb.Columns) -> list[str]:
    return list(found_in(columns))


# 12


def tool_turns(x: Input, times: int = 20) -> kb.Columns:
    """Rollouts whose mask covers a tool's answer, which the engine did not sample.

    Each of its tokens stands there twice: two unscored tokens in a row a sure policy has, too.
    """
    own = np.array(x["model_token_mask"], dtype=np.bool_)
    twice = np.where(own, 1, 2)
    kl, own = np.repeat(x["per_token_kl"], twice), np.repeat(own, twice)
    rng = np.random.default_rng(0)
    log_p = rng.uniform(-3.0, -0.5, size=(times, len(kl)))
    roles = {"rollout": np.where(own, log_p, 0.0), "old": log_p, "reference": log_p - kl}
    columns = kb.pack(roles)
    return replace(columns, tokens=rng.integers(1000, size=len(columns)))


# 14


def packed(x: Input, times: int = 12) -> kb.Columns:
    """Rows of two sequences, the first token of the second scored behind the first sequence."""
    roles = {
        role: np.tile(x[f"{key}_logprob_of_next_token"], times)
        for role, key in (("old", "policy"), ("reference", "ref"))
    }
    first = x["cu_seqlens"][1] - 1
    size = len(x["packed_token_ids"]) - 1
    columns = kb.pack(roles, lengths=np.tile([first, size - first], times))
    return replace(
        columns,
        tokens=np.tile(x["packed_token_ids"][1:], times),
        rows=np.repeat(np.arange(times), 2),
        within=np.tile([0, 1], times),
    )


# 20


def run_away(x: Input, steps: int = 60) -> list[str]:
    """What is found in the log of a coefficient that is multiplied at every step."""
    log_of_run = kb.StepLog.of(
        {
            "kl": np.full(steps, x["kl_every_iteration"]),
            "cur_kl_coeff": x["coef0"] * 1.5 ** np.arange(steps),
        }
    )
    return [one.code for one in kb.judge_log(log_of_run).findings]


# 39


def two_temperatures(x: Input) -> kb.Columns:
    """The engine's processed log-probs and the trainer's raw ones, with the heads of both."""
    sides = {"rollout": x["rollout_logprobs"], "old": x["trainer_logprobs"]}
    size = len(x["rollout_logprobs"])
    columns = kb.pack(sides, lengths=1)
    ids = np.tile(np.arange(size), (size, 1))
    heads = {role: TopK(ids, np.tile(one, (size, 1))) for role, one in sides.items()}
    return replace(columns, tokens=np.arange(size), top_k=heads)


def temperature(x: Input) -> float:
    return found_in(two_temperatures(x))["temperature-mismatch"].numbers["temperature_ratio"]["old"]


# 42, 44


Values = NDArray[np.float64]


def scored_twice(first: Values, second: Values, reference: Values) -> kb.Columns:
    """Two rows of the same tokens at step 0; the reference gave both the same log-probs."""
    roles = {"old": np.stack([first, second]), "reference": np.stack([reference] * 2)}
    columns = kb.pack(roles, clusters=[0, 0])
    tokens = np.tile(np.arange(len(first)), 2)
    return replace(columns, tokens=tokens, labels={"step": np.zeros(2)}, cluster_kind="prompt")


def engine_noise(x: Input) -> kb.Columns:
    """The case has differences alone; the tokens are as likely as tokens are."""
    difference = np.array(x["old_logprob_minus_new_logprob"])
    log_p = np.linspace(-0.2, -4.0, len(difference))
    return scored_twice(log_p, log_p - difference, log_p)


def dropout(x: Input, times: int = 5) -> kb.Columns:
    """Each action in turn, scored under either mask."""
    first, second = map(normalized, x["policy_logits_under_two_equally_likely_dropout_masks"])
    reference = normalized(x["reference_logits"])
    return scored_twice(*(np.tile(one, times) for one in (first, second, reference)))


def normalized(logits: ArrayLike) -> Values:
    values = np.array(logits)
    return values - np.log(np.exp(values).sum())


# 45


def step_0(x: Input, times: int = 100) -> kb.Columns:
    """What the start policy draws before any update, and the reference that is used."""
    start = x["start_policy"]
    counts = np.rint(times * np.array(start)).astype(np.int64)
    actions = np.repeat(np.arange(len(start)), counts)
    roles = {"old": log(start)[actions], "reference": log(x[x["reference_used"]])[actions]}
    columns = kb.pack(roles, lengths=1)
    return replace(columns, tokens=actions, labels={"step": np.zeros(len(actions))})
