"""tinker-cookbook: the penalty that is added to the advantages, and the distance that is logged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import tinker
import torch
from entry import Entry
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


def advantages(rollout: Any, reference: Any, tokens: Any, mask: Any, discount: float) -> Any:
    """What the penalty adds to the advantage of each token."""
    rows = data(rollout, tokens, mask)
    known = {(1, 2): [-0.75]}
    for datum, of in zip(rows, reference.detach(), strict=True):
        sequence = datum.loss_fn_inputs["target_tokens"].to_torch().tolist()
        known[(0, *sequence)] = of[: len(sequence)].tolist()
    whole = [*rows, rest_of_the_batch()]
    asyncio.run(incorporate_kl_penalty(whole, Base(known), 1.0, discount))
    out = torch.zeros_like(rollout)
    for row, datum in zip(out, rows, strict=True):
        added = datum.loss_fn_inputs["advantages"].to_torch()
        row[: len(added)] = added.to(row.dtype)
    return out


def penalty(discount: float) -> Callable[..., Any]:
    """The loss "importance_sampling" of the service with nothing but the penalty as advantage."""

    def term(current: Any, rollout: Any, reference: Any, tokens: Any, mask: Any) -> Any:
        added = advantages(rollout, reference, tokens, mask, discount)
        return -((current - rollout).exp() * added * mask).sum()

    return term


def sample_train(current: Any, rollout: Any, tokens: Any, mask: Any) -> Any:
    """What is logged as ``optim/kl_sample_train_v1``."""
    rows = data(rollout, tokens, mask)
    trained = [row[: int(n)].float() for row, n in zip(current.detach(), mask.sum(1), strict=True)]
    return torch.tensor(compute_kl_sample_train(rows, trained)["optim/kl_sample_train_v1"])


PENALTY = "tinker_cookbook.rl.metrics: incorporate_kl_penalty"
ENTRIES = (
    Entry("penalty", penalty(0.0), PENALTY, "kl_discount_factor=0 (default)", "advantage"),
    Entry("penalty, discounted", penalty(1.0), PENALTY, "kl_discount_factor=1", "advantage"),
    Entry(
        "kl_sample_train_v1",
        sample_train,
        "tinker_cookbook.rl.metrics: compute_kl_sample_train",
        "",
        "metric",
    ),
)
