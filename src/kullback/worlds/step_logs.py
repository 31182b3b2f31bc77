"""What an honest trainer logs of its steps, and what goes wrong in such a log.

Every number is a mean over tokens that were drawn: of a token, log p − log q is normal with mean κ
and variance 2κ, so that its KL is κ and the mean of q/p is 1. κ differs by prompt and wanders over
the steps. Where q has holes' mass m (tokens that p never samples), q/p loses the factor 1 − m.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Logged = dict[str, np.ndarray]

# What names the same numbers have in several logs: k1 and k3 of the policy from the reference, k1
# and k3 of the engine from the trainer, k1 of the update, the coefficient, tokens.
NAMES: Mapping[str, tuple[str, ...]] = {
    "verl": ("", "actor/kl_loss", "rollout_corr/kl", "rollout_corr/k3_kl", "actor/ppo_kl",
             "actor/kl_coef", "response_length/mean", "response_tokens"),
    "openrlhf": ("logprobs_diff", "", "vllm_kl", "", "ppo_kl", "kl_coef", "response_length",
                 "response_tokens"),
    "": ("train/kl_k1", "train/kl_k3", "engine/kl_k1", "engine/kl_k3", "train/approx_kl",
         "train/kl_coef", "train/response_length/mean", "num_response_tokens"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LogFault:
    """What a fault does, the finding code that should name it, and how to put it into a log."""

    caption: str
    code: str
    inject: Callable[[Logged, tuple[str, ...]], Logged]


def honest_log(
    rng: np.random.Generator, names: str = "verl", *, steps: int = 120, tokens: int = 2048
) -> Logged:
    """The series of an honest run by name, one number for each step.

    Args:
        rng: Draws all of it.
        names: Whose names the series have: a key of ``NAMES``.
        steps: The steps.
        tokens: Tokens of a step, about.

    Example:
        >>> log = honest_log(np.random.default_rng(0), steps=30)
        >>> sorted(log)[:3], bool((log["actor/kl_loss"] >= 0).all())
        (['actor/kl_coef', 'actor/kl_loss', 'actor/ppo_kl'], True)
    """
    drift = np.cumsum(np.abs(rng.normal(0.0, 1.0, steps)) * 10 ** rng.uniform(-5, -2.5))
    drift *= np.exp(np.cumsum(rng.normal(0, 0.05, steps)))
    drift[0] = 0.0  # the policy starts as its reference
    engine = np.full(steps, 10 ** rng.uniform(-5, -2))
    holes = rng.uniform(0, 0.3) if rng.random() < 0.5 else 0.0  # of the KL, at tokens never drawn
    lengths = rng.uniform(100, 400) * np.exp(np.cumsum(rng.normal(0, 0.02, steps)))
    counts = np.maximum(64, tokens * lengths / lengths[0]).astype(int)
    update = rng.normal(0, 1, steps) * 10 ** rng.uniform(-4, -2)  # trained on these very tokens
    to_reference = [_terms(rng, k, holes * k, n) for k, n in zip(drift, counts, strict=True)]
    to_trainer = [_terms(rng, k, 0.0, n) for k, n in zip(engine, counts, strict=True)]
    held = (
        *np.transpose(to_reference),
        *np.transpose(to_trainer),
        update,
        _coefficient(rng, drift),
        lengths,
        counts.astype(float),
    )
    return {name: one for name, one in zip(NAMES[names], held, strict=True) if name}


def _terms(rng: np.random.Generator, kl: float, mass: float, tokens: int) -> tuple[float, float]:
    """Means of k1 and k3 over tokens, with a KL that differs by prompt."""
    prompts = rng.gamma(2.0, 0.5, 16)
    each = kl * (prompts / prompts.mean())[rng.integers(16, size=tokens)]
    log_q_over_p = rng.normal(-each, np.sqrt(2 * each)) + np.log1p(-mass)
    k3 = np.expm1(log_q_over_p) - log_q_over_p
    return float(-log_q_over_p.mean()), float(k3.mean())


def _coefficient(rng: np.random.Generator, drift: np.ndarray) -> np.ndarray:
    """One that stands, or one that follows the KL to a target within its reach."""
    if rng.random() < 0.5:
        return np.full(len(drift), 0.001)
    target = float(np.median(drift)) + 1e-6
    error = np.clip(drift / target - 1, -0.2, 0.2)
    return 0.01 * np.exp(np.cumsum(error * 0.1))


def _wrong_sampler(log: Logged, names: tuple[str, ...]) -> Logged:
    """The log-probs of q's side drew the tokens: the sum falls by the other KL."""
    name = names[2]
    return log | {name: -np.abs(log[name]) - 0.004}


def _turned(log: Logged, names: tuple[str, ...]) -> Logged:
    name = names[3]
    return log | {name: -log[name] - 0.001}


def _doubled(log: Logged, names: tuple[str, ...]) -> Logged:
    return log | {f"{names[3]}_again": 2 * log[names[3]]}


def _micro_batches(log: Logged, names: tuple[str, ...]) -> Logged:
    return log | {f"{names[3]}_again": log[names[3]] / 8}


def _per_length(log: Logged, names: tuple[str, ...]) -> Logged:
    return log | {f"{names[3]}_again": log[names[3]] * log[names[6]]}


def _spike(log: Logged, names: tuple[str, ...]) -> Logged:
    held = log[names[3]].copy()
    held[len(held) // 2] = 1e3
    return log | {names[3]: held}


def _nan(log: Logged, names: tuple[str, ...]) -> Logged:
    held = log[names[3]].copy()
    held[-3:] = np.nan
    return log | {names[3]: held}


def _other_reference(log: Logged, names: tuple[str, ...]) -> Logged:
    return log | {names[1]: log[names[1]] + 0.3}


def _runaway(log: Logged, names: tuple[str, ...]) -> Logged:
    """The target is out of reach, and the coefficient is multiplied by 1.5 at each step."""
    return log | {names[5]: 0.2 * 1.5 ** np.arange(len(log[names[5]]), dtype=float)}


def _unused(log: Logged, names: tuple[str, ...]) -> Logged:
    return log | {names[5]: np.zeros(len(log[names[5]]))}


def _changed(log: Logged, names: tuple[str, ...]) -> Logged:
    held = log[names[3]].copy()
    held[len(held) // 2 :] *= 8
    return log | {names[3]: held}


def _exploding(log: Logged, names: tuple[str, ...]) -> Logged:
    """It grows by the same share at each step, to four nats."""
    grown = np.expm1(np.linspace(0, 6, len(log[names[1]])))
    return log | {names[1]: log[names[1]] + 0.01 * grown}


LOG_FAULTS = {
    "wrong-sampler": LogFault(
        "the tokens of a logged k1 were not drawn by its first policy",
        "negative-beyond-chance",
        _wrong_sampler,
    ),
    "sign": LogFault("a k3 is logged with its sign turned", "sign-impossible", _turned),
    "doubled": LogFault("a KL is also logged twice as large", "unit-or-scale", _doubled),
    "micro-batches": LogFault(
        "a KL is also logged divided by 8 micro-batches once more", "unit-or-scale", _micro_batches
    ),
    "sequences": LogFault(
        "a KL is also logged times the length of the responses, under a name for the same",
        "unit-or-scale",
        _per_length,
    ),
    "spike": LogFault("three tokens own the mean of one step", "mean-owned-by-few", _spike),
    "nan": LogFault("a KL is NaN from some step on", "not-finite", _nan),
    "other-reference": LogFault(
        "the reference is not the policy that training starts from",
        "reference-not-start",
        _other_reference,
    ),
    "runaway": LogFault(
        "a coefficient is multiplied at each step", "controller-saturated", _runaway
    ),
    "unused": LogFault("the coefficient is 0", "penalty-not-used", _unused),
    "changed": LogFault(
        "a KL is eight times as large from some step on", "level-changed", _changed
    ),
    "exploding": LogFault(
        "the policy runs away from its reference, to four nats per token", "far-apart", _exploding
    ),
}
