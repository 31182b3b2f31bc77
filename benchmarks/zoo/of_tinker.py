"""tinker-cookbook: the penalty that is added to the advantages, and the distance that is logged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import tinker
import torch
from entry import Entry
from tinker_cookbook.distillation import train_on_policy
from tinker_cookbook.rl.metrics import compute_kl_sample_train, incorporate_kl_penalty

PACKAGES = ("tinker-cookbook", "tinker")


class Base:
    """A sampling client of the base model, whose log-probs of each sequence are known."""

    def __init__(self, by_sequence: dict[tuple[int, ...], list[float]]) -> None:
        self.known = by_sequence

    def sample(self, prompt: Any, **settings: Any) -> Any:
        """The log-probs of a prompt, of which the first token has none."""
        known = [None, *self.known[tuple(prompt.to_ints())]]
        answer = SimpleNamespace(prompt_logprobs=known, prompt_cache_hit_tokens=0, sequences=[])

        async def coroutine() -> Any:
            return answer

        return SimpleNamespace(coroutine=coroutine)

    def compute_logprobs(self, prompt: Any) -> Any:
        """The same, without what else a sample brings."""

        async def coroutine() -> Any:
            return [None, *self.known[tuple(prompt.to_ints())]]

        return SimpleNamespace(coroutine=coroutine)


def data(sampled: Any, tokens: Any, mask: Any) -> list[tinker.Datum]:
    """Each sequence after a prompt of one token; what is past its end is left out."""
    rows = []
    for log_probs, row, length in zip(
        sampled.detach(), tokens, mask.sum(1).long().tolist(), strict=True
    ):
        fields = {
            "target_tokens": row[:length],
            "logprobs": log_probs[:length].float(),
            "advantages": torch.zeros(length),
            "mask": torch.ones(length),
        }
        rows.append(
            tinker.Datum(
                model_input=tinker.ModelInput.from_ints([0, *row[: length - 1].tolist()]),
                loss_fn_inputs={
                    name: tinker.TensorData.from_torch(of) for name, of in fields.items()
                },
            )
        )
    return rows


def rest_of_the_batch() -> tinker.Datum:
    """One token that weighs as many do, 0.25 nats from the base: the mean that is centered on.

    A sequence alone would be centered on itself, which no batch of many is.
    """
    fields = {"target_tokens": [2], "logprobs": [-0.5], "advantages": [0.0], "mask": [1e9]}
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints([1]),
        loss_fn_inputs={
            name: tinker.TensorData.from_torch(torch.tensor(of)) for name, of in fields.items()
        },
    )


def known(rows: list[tinker.Datum], reference: Any) -> Base:
    """The base model, or the teacher, of these sequences."""
    by_sequence = {(1, 2): [-0.75]}
    for datum, of in zip(rows, reference.detach(), strict=True):
        sequence = datum.loss_fn_inputs["target_tokens"].to_torch().tolist()
        by_sequence[(0, *sequence)] = of[: len(sequence)].tolist()
    return Base(by_sequence)


def penalized(rows: list[tinker.Datum], base: Base, discount: float) -> None:
    """The penalty of RL, which is centered on the mean of the batch."""
    asyncio.run(incorporate_kl_penalty([*rows, rest_of_the_batch()], base, 1.0, discount))


def distilled(rows: list[tinker.Datum], teacher: Base, discount: float) -> None:
    """The advantage of on-policy distillation."""
    clients, sets = [teacher] * len(rows), [0] * len(rows)
    asyncio.run(train_on_policy.incorporate_kl_penalty(rows, clients, sets, 1.0, discount))


def advantage(added: Callable[..., None], discount: float) -> Callable[..., Any]:
    """The loss "importance_sampling" of the service with nothing but this as advantage."""

    def term(current: Any, rollout: Any, reference: Any, tokens: Any, mask: Any) -> Any:
        rows = data(rollout, tokens, mask)
        added(rows, known(rows, reference), discount)
        advantages = torch.zeros_like(rollout)
        for row, datum in zip(advantages, rows, strict=True):
            of = datum.loss_fn_inputs["advantages"].to_torch()
            row[: len(of)] = of.to(row.dtype)
        return -((current - rollout).exp() * advantages * mask).sum()

    return term


def sample_train(current: Any, rollout: Any, tokens: Any, mask: Any) -> Any:
    """What is logged as ``optim/kl_sample_train_v1``."""
    rows = data(rollout, tokens, mask)
    trained = [row[: int(n)].float() for row, n in zip(current.detach(), mask.sum(1), strict=True)]
    return torch.tensor(compute_kl_sample_train(rows, trained)["optim/kl_sample_train_v1"])


PENALTY = "tinker_cookbook.rl.metrics: incorporate_kl_penalty"
DISTILLED = "tinker_cookbook.distillation.train_on_policy: incorporate_kl_penalty"
ENTRIES = (
    *(
        Entry(
            name + ", discounted" * bool(discount),
            advantage(added, discount),
            where,
            f"kl_discount_factor={discount:.0f}" + " (default)" * (not discount),
            "advantage",
        )
        for name, added, where in (
            ("penalty", penalized, PENALTY),
            ("distillation", distilled, DISTILLED),
        )
        for discount in (0.0, 1.0)
    ),
    Entry(
        "kl_sample_train_v1",
        sample_train,
        "tinker_cookbook.rl.metrics: compute_kl_sample_train",
        "",
        "metric",
    ),
)
