"""liger-kernel: the KL of the chunked GRPO loss, its k3, and the fused linear JSD."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from entry import Entry
from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss, LigerFusedLinearJSDLoss
from liger_kernel.chunked_loss.grpo_loss import k3_loss_fn
from measures import ENDS, Measure, along_beta

PACKAGES = ("liger-kernel", "triton")


def grpo(**settings: Any) -> Callable[..., Any]:
    """The whole loss where every advantage is 0; the head is the identity, so hidden is logits."""

    def term(logits: Any, reference: Any, old: Any, tokens: Any, mask: Any) -> Any:
        loss = LigerFusedLinearGRPOLoss(beta=1.0, compiled=False, **settings)
        hidden = logits.float()
        return loss(
            hidden,
            torch.eye(logits.shape[-1]),
            tokens,
            mask.float(),
            torch.zeros(len(logits)),
            ref_per_token_logps=reference.detach().float(),
            old_per_token_logps=old.detach().float(),
        )

    return term


def k3(current: Any, reference: Any, mask: Any) -> Any:
    """Called as the loss calls it: the reference first."""
    return (k3_loss_fn(reference, current) * mask).sum() / mask.sum()


def jsd(beta: float) -> Callable[..., Any]:
    """Nothing but the soft loss, on logits; the reference teaches."""

    def term(logits: Any, reference_logits: Any, mask: Any) -> Any:
        loss = LigerFusedLinearJSDLoss(
            weight_hard_loss=0.0, weight_soft_loss=1.0, beta=beta, compiled=False
        )
        size = logits.shape[-1]
        valid = mask.bool()
        head = torch.eye(size, dtype=logits.dtype)
        labels = torch.zeros(int(valid.sum()), dtype=torch.long)
        return loss(logits[valid], head, reference_logits[valid].detach(), head, labels)

    return term


def jsd_of_a_row(student: Any, teacher: Any, beta: float) -> Any:
    """The divergence of one position."""
    return jsd(beta)(student[None, None], teacher[None, None], torch.ones(1, 1))


GRPO = "liger_kernel.chunked_loss: LigerFusedLinearGRPOLoss"
JSD = "liger_kernel.chunked_loss: LigerFusedLinearJSDLoss"
ENTRIES = (
    Entry("GRPO", grpo(), GRPO, "use_bias_correction_kl=False (default)", "loss"),
    Entry(
        "GRPO, bias correction",
        grpo(use_bias_correction_kl=True),
        GRPO,
        "use_bias_correction_kl=True",
        "loss",
    ),
    Entry("GRPO, mean of sequences", grpo(loss_type="grpo"), GRPO, "loss_type=grpo", "loss"),
    Entry("k3_loss_fn", k3, "liger_kernel.chunked_loss.grpo_loss: k3_loss_fn", "", "loss"),
    *(Entry(f"JSD {beta}", jsd(beta), JSD, f"beta={beta}", "loss") for beta in (0.0, 0.5, 1.0)),
)
MEASURES = (Measure("JSD along beta", partial(along_beta, jsd_of_a_row), JSD, ENDS),)
