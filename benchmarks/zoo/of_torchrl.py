"""torchrl: the KL terms of ``GRPOLoss``, the transform of rewards, the estimate of distillation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from entry import Entry
from tensordict import TensorDict, lazy_stack
from torchrl.envs.llm.transforms.kl import KLComputation
from torchrl.objectives.llm import GRPOLoss, k3_kl_token_estimate

PACKAGES = ("torchrl", "tensordict")


class Actor(torch.nn.Module):
    """A policy whose log-probs of the batch are known."""

    def __init__(self, log_probs: Any, mask: Any) -> None:
        super().__init__()
        self.known = log_probs, mask

    def get_dist(self, tensordict: Any, **settings: Any) -> Any:
        """What ``GRPOLoss`` asks a policy for."""
        log_probs, mask = self.known
        return SimpleNamespace(mask=mask.bool(), log_prob=lambda action: log_probs)


def grpo(current: Any, old: Any, mask: Any, **settings: Any) -> Any:
    """All terms of ``GRPOLoss`` where every advantage is 0; ``ref`` goes by keyword."""
    reference = settings.pop("reference", old)
    loss = GRPOLoss(Actor(current, mask), entropy_bonus=False, **settings)
    data = TensorDict(
        {
            "tokens": {"full": mask.long()},
            "log_probs": {"full": old.detach()},
            "next": {"ref_log_probs": {"full": reference}},
            "advantage": torch.zeros_like(current.detach()).unsqueeze(-1),
        },
        batch_size=len(mask),
    )
    return loss(data)


def to_reference(current: Any, reference: Any, old: Any, mask: Any) -> Any:
    """The leash."""
    return grpo(current, old, mask, reference=reference, kl_to_ref_coeff=1.0).loss_kl_to_ref


def to_inference(current: Any, rollout: Any, mask: Any) -> Any:
    """The distance from the engine that sampled."""
    return grpo(current, rollout, mask, kl_to_inference_coeff=1.0).loss_kl_to_inference


def approx(current: Any, old: Any, mask: Any) -> Any:
    """What is logged as ``kl_approx``."""
    return grpo(current, old, mask).kl_approx


def in_reward(rollout: Any, reference: Any, mask: Any) -> Any:
    """What is taken off the reward of each token."""
    after = lazy_stack(
        [
            TensorDict(
                {
                    "log_probs": {"full": ours[:length]},
                    "ref_log_probs": {"full": theirs[:length]},
                    "reward": ours.new_zeros(length, 1),
                }
            )
            for ours, theirs, length in zip(
                rollout.detach(), reference.detach(), mask.sum(1).long().tolist(), strict=True
            )
        ]
    )
    rewards = KLComputation()(after).get("reward", as_list=True)
    padded = torch.nn.utils.rnn.pad_sequence(rewards, batch_first=True).squeeze(-1)
    return -torch.nn.functional.pad(padded, (0, mask.shape[1] - padded.shape[1]))


def distilled(student: Any, teacher: Any, mask: Any) -> Any:
    """The mean over sequences of the sum over tokens."""
    return (k3_kl_token_estimate(teacher, student) * mask).sum(-1).mean()


def student_first(current: Any, reference: Any, mask: Any) -> Any:
    """On tokens of the student: KL(student‖teacher)."""
    return distilled(current, reference, mask)


def teacher_first(current: Any, old: Any, mask: Any) -> Any:
    """On tokens of the teacher, KL(teacher‖student); the old policy is the teacher, who sampled."""
    return distilled(old, current, mask)


GRPO = "torchrl.objectives.llm: GRPOLoss"
K3 = "torchrl.objectives.llm: k3_kl_token_estimate"
ENTRIES = (
    Entry("GRPO, to the reference", to_reference, GRPO, "kl_to_ref_coeff=1", "loss"),
    Entry("GRPO, to inference", to_inference, GRPO, "kl_to_inference_coeff=1", "loss"),
    Entry("GRPO, kl_approx", approx, GRPO, "", "metric"),
    Entry(
        "KLComputation",
        in_reward,
        "torchrl.envs.llm.transforms.kl: KLComputation",
        "add_to_reward=True (default)",
        "reward",
    ),
    Entry("k3_kl_token_estimate, of the student", student_first, K3, "sum of tokens", "loss"),
    Entry("k3_kl_token_estimate, of the teacher", teacher_first, K3, "sum of tokens", "loss"),
)
