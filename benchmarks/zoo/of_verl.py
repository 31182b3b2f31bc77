"""verl: ``kl_penalty`` in all its types, in the actor's loss and in the reward; distillation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from entry import Entry
from measures import STUDENT, TEACHER, Measure
from tensordict import TensorDict
from verl import DataProto
from verl.trainer.distillation.fsdp.losses import compute_forward_kl_topk
from verl.trainer.distillation.losses import distillation_loss
from verl.trainer.ppo.core_algos import (
    FixedKLController,
    agg_loss,
    compute_policy_loss_vanilla,
    kl_penalty,
)
from verl.trainer.ppo.ray_trainer import apply_kl_penalty
from verl.trainer.ppo.rollout_corr_helper import compute_offpolicy_metrics
from verl.workers.config import ActorConfig, DistillationLossConfig
from verl.workers.utils.losses import ppo_loss

import kullback as kb

PACKAGES = ("verl", "tensordict")
MODES = (
    "token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean",
    "seq-mean-token-sum-norm",
)  # fmt: skip


def penalty(kind: str, mode: str) -> Callable[..., Any]:
    """A type of KL in a mode of aggregation."""

    def term(current: Any, reference: Any, mask: Any) -> Any:
        return agg_loss(kl_penalty(current, reference, kind), mask, mode)

    return term


def actor(**settings: Any) -> ActorConfig:
    """The configuration of the actor, all else as released."""
    return ActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, **settings)


def unpadded(per_token: Any, mask: Any) -> Any:
    """Values of responses as the model puts them out: a prompt of one token each, no padding."""
    rows = [
        torch.cat([row[keep], row.new_zeros(1)])
        for row, keep in zip(per_token, mask.bool(), strict=True)
    ]
    return torch.cat(rows)


def batch(mask: Any, **fields: Any) -> TensorDict:
    """A micro batch on one device."""
    one = mask.new_ones(len(mask), 1).long()
    data = TensorDict(
        {
            "prompts": one,
            "responses": mask.long(),
            "attention_mask": torch.cat([one, mask.long()], dim=1),
            "response_mask": mask.bool(),
            "advantages": torch.zeros_like(mask, dtype=torch.float64),
            **fields,
        },
        batch_size=len(mask),
    )
    for name, value in {"dp_size": 1, "batch_num_tokens": None, "global_batch_size": None}.items():
        data.set_non_tensor(name, value)
    return data


def actor_loss(current: Any, reference: Any, old: Any, rollout: Any, mask: Any) -> Any:
    """The whole loss of the actor, with weights for tokens of another engine."""
    data = batch(
        mask,
        old_log_probs=old.detach(),
        ref_log_prob=reference,
        rollout_is_weights=(old - rollout).exp().detach(),
    )
    output = {"log_probs": unpadded(current, mask)}
    return ppo_loss(actor(use_kl_loss=True, kl_loss_coef=1.0), output, data)


def in_reward(kind: str) -> Callable[..., Any]:
    """What a type of KL takes off the reward of each token."""

    def term(old: Any, reference: Any, mask: Any) -> Any:
        tensors = {
            "response_mask": mask,
            "token_level_scores": torch.zeros_like(old),
            "old_log_probs": old.detach(),
            "ref_log_prob": reference,
        }
        data = DataProto.from_dict(tensors=tensors)
        after, _ = apply_kl_penalty(data, FixedKLController(kl_coef=1.0), kind)
        return -after.batch["token_level_rewards"]

    return term


def distilled(use_policy_gradient: bool, loss_mode: str) -> Callable[..., Any]:
    """On-policy distillation from the log-probs of the sampled tokens; the reference teaches."""
    settings = DistillationLossConfig(
        loss_mode=loss_mode, use_policy_gradient=use_policy_gradient, use_task_rewards=False
    )
    whole = SimpleNamespace(distillation_loss=settings)

    def term(current: Any, reference: Any, old: Any, mask: Any) -> Any:
        ends = torch.nn.functional.pad((mask.sum(1) + 1).long().cumsum(0), (1, 0))
        teacher = torch.nested.nested_tensor_from_jagged(
            unpadded(reference, mask).unsqueeze(-1), offsets=ends
        )
        data = batch(mask, old_log_probs=old.detach(), teacher_logprobs=teacher)
        return distillation_loss(actor(), whole, {"log_probs": unpadded(current, mask)}, data)

    return term


def ppo_kl(current: Any, old: Any, mask: Any) -> Any:
    """What is logged as ``actor/ppo_kl``."""
    nothing = torch.zeros_like(mask, dtype=current.dtype)
    settings = {"response_mask": mask, "advantages": nothing, "config": actor()}
    _, logged = compute_policy_loss_vanilla(old.detach(), current.detach(), **settings)
    return torch.tensor(logged["actor/ppo_kl"])


def off_policy(key: str) -> Callable[..., Any]:
    """What is logged of the engine that sampled, under ``rollout_corr/``."""

    def term(old: Any, rollout: Any, mask: Any) -> Any:
        return torch.tensor(compute_offpolicy_metrics(old, rollout, mask)[key])

    return term


def of_the_top(tokens: int) -> dict[str, Any]:
    """Top-k distillation of one position, for each k, beside the KL of the whole vocabulary."""
    student, teacher = STUDENT.log_softmax(-1), TEACHER.log_softmax(-1)
    settings = DistillationLossConfig(loss_mode="forward_kl_topk", use_policy_gradient=False)
    rows = []
    for k in range(1, tokens + 1):
        best, ids = teacher.topk(k)
        best, ids = (
            torch.nested.nested_tensor_from_jagged(one[None], offsets=torch.tensor([0, 1]))
            for one in (best, ids)
        )
        whole = SimpleNamespace(distillation_loss=settings)
        found = compute_forward_kl_topk(student[None, None], best, ids, whole, "thd")
        rows.append({"k": k, "measured": float(found["distillation_losses"])})
    return {
        "KL(teacher||student)": float(kb.divergence(teacher.exp(), student.exp())),
        "rows": rows,
    }


def at_a_hole() -> dict[str, Any]:
    """The mean of low_var_kl where the policy dropped one of three tokens, beside the KL."""
    reference = torch.tensor([0.2, 0.4, 0.4], dtype=torch.float64)
    rows = []
    for ratio in (10.0, 16.0, 30.0, 100.0, 1000.0):
        dropped = 0.2 / ratio
        policy = torch.tensor([dropped, *[(1 - dropped) / 2] * 2], dtype=torch.float64)
        found = kl_penalty(policy.log(), reference.log(), "low_var_kl")
        rows.append(
            {
                "reference_over_policy": ratio,
                "measured": float((policy * found).sum()),
                "KL(policy||reference)": float(kb.divergence(policy, reference)),
            }
        )
    return {"rows": rows}


def near_the_reference() -> dict[str, Any]:
    """The pull of each type in the reward of one token, beside that of the KL itself.

    ``size`` is that of the expected gradient, relative to the gradient of the KL; ``cosine`` that
    of the angle between the two.
    """
    rows = []
    direction = torch.tensor([1.0, -0.5, 0.3, -1.0, 0.8, 0.1, -0.6, 0.4], dtype=torch.float64)
    for distance in (0.5, 0.1, 0.02):
        theirs = TEACHER.log_softmax(-1)
        logits = TEACHER + distance * direction / direction.norm()
        ours = logits.log_softmax(-1)
        probability = ours.exp()
        mask = torch.ones(len(ours), 1)

        def pull(cost: Any, p: Any = probability) -> Any:
            return p * (cost - (p * cost).sum())

        true = pull(ours - theirs)
        for kind in ("kl", "abs", "mse", "low_var_kl"):
            found = pull(in_reward(kind)(ours[:, None], theirs[:, None], mask)[:, 0])
            rows.append(
                {
                    "distance": distance,
                    "kl_penalty": kind,
                    "size": float(found.norm() / true.norm()),
                    "cosine": float(found @ true / found.norm() / true.norm()),
                }
            )
    return {"rows": rows}


LOSS = "verl.trainer.ppo.core_algos: kl_penalty, agg_loss"
REWARD = "verl.trainer.ppo.ray_trainer: apply_kl_penalty"
DISTILLATION = "verl.trainer.distillation.losses: distillation_loss"
ENTRIES = (
    Entry(
        "actor loss",
        actor_loss,
        "verl.workers.utils.losses: ppo_loss",
        "use_kl_loss=True, kl_loss_type=low_var_kl (default), rollout_is_weights given",
        "loss",
    ),
    *(
        Entry(f"loss {kind}", penalty(kind, "token-mean"), LOSS, f"kl_loss_type={kind}", "loss")
        for kind in ("k1", "abs", "k2", "low_var_kl", "k1+", "abs+", "k2+", "low_var_kl+")
    ),
    *(
        Entry(
            f"loss low_var_kl, {mode}",
            penalty("low_var_kl", mode),
            LOSS,
            f"loss_agg_mode={mode}",
            "loss",
        )
        for mode in MODES[1:]
    ),
    Entry(
        "loss k1, seq-mean-token-mean",
        penalty("k1", "seq-mean-token-mean"),
        LOSS,
        "kl_loss_type=k1, loss_agg_mode=seq-mean-token-mean",
        "loss",
    ),
    *(
        Entry(f"reward {kind}", in_reward(kind), REWARD, f"kl_penalty={kind}", "reward")
        for kind in ("kl", "abs", "mse", "low_var_kl", "low_var_kl+")
    ),
    Entry(
        "distillation, supervised",
        distilled(use_policy_gradient=False, loss_mode="k3"),
        DISTILLATION,
        "loss_mode=k3, use_policy_gradient=False (as in the YAML file)",
        "loss",
    ),
    *(
        Entry(
            f"distillation, policy gradient, {mode}",
            distilled(use_policy_gradient=True, loss_mode=mode),
            DISTILLATION,
            f"loss_mode={mode}, use_policy_gradient=True (as in the dataclass)",
            "loss",
        )
        for mode in ("k3", "k1")
    ),
    Entry(
        "ppo_kl",
        ppo_kl,
        "verl.trainer.ppo.core_algos: compute_policy_loss_vanilla",
        "actor/ppo_kl",
        "metric",
    ),
    *(
        Entry(
            f"rollout_corr {key}",
            off_policy(key),
            "verl.trainer.ppo.rollout_corr_helper: compute_offpolicy_metrics",
            f"rollout_corr/{key}",
            "metric",
        )
        for key in ("kl", "k3_kl")
    ),
)
MEASURES = (
    Measure(
        "low_var_kl at a hole",
        at_a_hole,
        "verl.trainer.ppo.core_algos: kl_penalty",
        "The clamp at 10 begins where the reference is 13.6 times likelier: beyond it the mean is "
        "far below the KL, and nothing pulls the dropped token back.",
    ),
    Measure(
        "the reward near the reference",
        near_the_reference,
        REWARD,
        "The expected pull on one token of eight at three distances of the logits from the "
        "reference, relative to that of the KL: only k1 (kl) is right; low_var_kl fades.",
    ),
    Measure(
        "forward_kl_topk along k",
        partial(of_the_top, len(TEACHER)),
        "verl.trainer.distillation.fsdp.losses: compute_forward_kl_topk",
        "The terms of the teacher's k most likely tokens, neither renormalized nor with a term for "
        "the rest: no KL unless k is the vocabulary, and not even a bound of one.",
    ),
)
