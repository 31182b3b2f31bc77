"""TRL: the KL terms of GRPO, GMPO, RLOO and KTO, and the divergences of its distillers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import torch
from entry import Entry
from measures import ENDS, Measure, along_beta
from trl import GRPOConfig, KTOConfig, RLOOConfig
from trl.experimental.async_grpo import AsyncGRPOTrainer
from trl.experimental.gkd import GKDTrainer
from trl.experimental.gmpo import GMPOConfig, GMPOTrainer
from trl.trainer.distillation_trainer import _chunked_divergence_loss
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.kto_trainer import KTOTrainer
from trl.trainer.rloo_trainer import RLOOTrainer

PACKAGES = ("trl", "transformers")
ALONE = SimpleNamespace(  # an accelerator of one process
    num_processes=1,
    process_index=0,
    device=torch.device("cpu"),
    reduce=lambda values, reduction: values,
    gather=lambda values: values,
    gather_for_metrics=lambda values: values,
)
GIVEN = {"output_dir": "build/zoo/trl/out", "report_to": "none", "use_cpu": True, "bf16": False}


COPIED = ("beta", "loss_type", "importance_sampling_level", "top_entropy_quantile")


def grpo(
    trainer: type = GRPOTrainer, config: type = GRPOConfig, vllm: bool = False, **settings: Any
) -> Callable[..., Any]:
    """``_compute_loss`` where every advantage is 0 and beta is 1."""
    args = config(**GIVEN, beta=1.0, **settings)

    def term(current: Any, reference: Any, old: Any, rollout: Any, mask: Any) -> Any:
        stand_in = SimpleNamespace(
            _get_per_token_logps_and_entropies=lambda *given, **more: (
                current,
                torch.zeros_like(current),
                None,
            ),
            args=args,
            model=SimpleNamespace(training=True),
            accelerator=ALONE,
            current_gradient_accumulation_steps=1,
            aux_loss_enabled=False,
            off_policy_mask_threshold=None,
            use_vllm=vllm,
            vllm_importance_sampling_correction=args.vllm_importance_sampling_correction,
            epsilon_low=args.epsilon,
            epsilon_high=args.epsilon,
            _entropy_bonus_enabled=False,
            _metrics={"train": defaultdict(list)},
            **{name: getattr(args, name) for name in COPIED},
        )
        prompt = torch.ones(len(mask), 1, dtype=torch.long)
        inputs = {
            "prompt_ids": prompt,
            "prompt_mask": prompt,
            "completion_ids": mask.long(),
            "completion_mask": mask.long(),
            "advantages": torch.zeros(len(mask), dtype=current.dtype),
            "old_per_token_logps": old.detach(),
            "ref_per_token_logps": reference.detach(),
            "importance_sampling_ratio": (old - rollout).exp().detach(),
            "num_items_in_batch": mask.sum(),
        }
        return trainer._compute_loss(stand_in, None, inputs)

    return term


def async_kl(current: Any, rollout: Any, mask: Any) -> Any:
    """What asynchronous GRPO, which holds to no reference, logs as ``kl``."""
    valid = mask.bool()
    ours, theirs = current.detach()[valid][None], rollout.detach()[valid][None]
    number, nothing = torch.arange(ours.numel())[None], torch.zeros_like(ours)
    logged = defaultdict(list)
    counters = ("forward_tokens", "trained_tokens", "seq_len_weighted", "samples", "forward_s")
    stand_in = SimpleNamespace(
        accelerator=ALONE,
        aux_loss_enabled=False,
        epsilon_low=0.2,
        epsilon_high=0.2,
        current_gradient_accumulation_steps=1,
        _metrics={"train": logged},
        **{f"_step_{name}": 0.0 for name in counters},
    )
    inputs = {
        **dict.fromkeys(("input_ids", "position_ids", "shift_labels", "token_index"), number),
        **dict.fromkeys(("tree_kv_index", "tree_cu_seqlens_q", "tree_cu_seqlens_k"), number),
        **dict.fromkeys(("global_n_tokens", "global_n_forward_tokens"), mask.sum()[None]),
        "mean_seq_len": torch.ones(1),
        "attention_mask": torch.ones_like(number),
        "old_log_probs": theirs,
        "advantages": nothing,
        "segment_id": torch.zeros_like(number),
        "tree_max_seqlens": torch.ones(1, 2, dtype=torch.long),
    }
    made = SimpleNamespace(log_probs=ours, entropy=nothing)
    AsyncGRPOTrainer.compute_loss(stand_in, lambda **given: made, inputs)
    return torch.tensor(logged["kl"][0])


def rloo(old: Any, reference: Any, mask: Any) -> Any:
    """What RLOO takes off the reward of a sequence.

    Its advantage is the reward less that of its siblings. Each sequence here has one sibling, of
    which the KL is 0: both policies think it equally likely.
    """
    args = RLOOConfig(**GIVEN, beta=1.0, num_generations=2)
    model = SimpleNamespace(training=True, is_gradient_checkpointing=False)
    lengths = [n for n in mask.sum(1).long().tolist() for _ in range(2)]

    def log_probs(asked: Any, *given: Any, **more: Any) -> Any:
        known = old.detach() if asked is model else reference.detach()
        return torch.stack([known, torch.zeros_like(known)], dim=1).flatten(0, 1), None, None

    stand_in = SimpleNamespace(
        accelerator=ALONE,
        model=model,
        ref_model="reference",
        args=args,
        beta=args.beta,
        num_generations=args.num_generations,
        normalize_advantages=args.normalize_advantages,
        reward_clip_range=args.reward_clip_range,
        mask_truncated_completions=args.mask_truncated_completions,
        pad_to_multiple_of=None,
        _tokenizer=SimpleNamespace(pad_token_id=0),
        _generate=lambda prompts: ([[1]] * len(lengths), [[1] * n for n in lengths], lengths),
        _get_per_token_logps_and_entropies=log_probs,
        _calculate_rewards=lambda *given: torch.zeros(len(lengths), 1, dtype=old.dtype),
        reward_weights=torch.ones(1),
        reward_func_names=["none"],
        _metrics={"train": defaultdict(list)},
        _logs={
            **{name: [] for name in ("prompt", "completion", "advantages")},
            **{name: defaultdict(list) for name in ("rewards", "extra")},
        },
        _pending_extra_logs={},
        _pending_metrics={},
        log_multimodal=False,
    )
    made = RLOOTrainer._generate_and_score_completions(stand_in, [{"prompt": ""}] * len(lengths))
    return -made["advantages"][::2]


def gkd(beta: float) -> Callable[..., Any]:
    """The divergence of GKD; the reference teaches."""

    def term(logits: Any, reference_logits: Any, mask: Any) -> Any:
        labels = torch.where(mask.bool(), 0, -100)
        return GKDTrainer.generalized_jsd_loss(
            logits, reference_logits.detach(), labels=labels, beta=beta
        )

    return term


def distilled(beta: float) -> Callable[..., Any]:
    """The divergence of the distiller; the heads are the identity, so hidden is logits."""

    def term(logits: Any, reference_logits: Any, mask: Any) -> Any:
        head = torch.eye(logits.shape[-1])
        return _chunked_divergence_loss(
            logits.float(), reference_logits.detach().float(), head, head, mask, beta
        )

    return term


def gkd_of_a_row(student: Any, teacher: Any, beta: float) -> Any:
    """GKD's divergence of one position."""
    return GKDTrainer.generalized_jsd_loss(student[None, None], teacher[None, None], beta=beta)


def distilled_of_a_row(student: Any, teacher: Any, beta: float) -> Any:
    """The distiller's divergence of one position."""
    return distilled(beta)(student[None, None], teacher[None, None], torch.ones(1, 1))[0]


class OnTable:
    """A model of which the log-probs are a table: [prompts, tokens, alphabet]."""

    is_gradient_checkpointing = False
    training = True

    def __init__(self, table: Any) -> None:
        self.table = table.log_softmax(-1)

    def __call__(self, input_ids: Any, labels: Any, **settings: Any) -> Any:
        """The log-probs of what follows the prompts, 0 where there is no label."""
        prompt, rest = input_ids[:, 0], input_ids[:, 1:]
        every = self.table[prompt].gather(-1, rest[..., None])[..., 0]
        log_probs = every.masked_fill(labels[:, 1:] == -100, 0.0)
        nothing = torch.zeros_like(every)
        return SimpleNamespace(log_probs=log_probs, entropy=nothing, mean_logits=nothing)


def kto() -> dict[str, Any]:
    """``kl`` of KTO over all batches of two prompts whose completions the policy wrote itself."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 2, 3, generator=generator, dtype=torch.float64)
    theirs = logits + 0.7 * torch.randn(2, 2, 3, generator=generator, dtype=torch.float64)
    policy, reference = OnTable(logits), OnTable(theirs)
    completions = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    mean_logged, mean_log_ratio, clamped = 0.0, 0.0, 0.0
    for first, second in product(completions, completions):
        written, shifted = torch.stack([first, second]), torch.stack([second, first])
        place = torch.arange(2)
        probability = policy.table[0, place, first].sum() + policy.table[1, place, second].sum()
        logged = kto_logged(policy, reference, written, shifted)
        log_ratio = sum(
            float((policy.table - reference.table)[prompt, place, row].sum())
            for prompt, row in enumerate(shifted)
        )
        mean_logged += float(probability.exp()) * logged
        mean_log_ratio += float(probability.exp()) * log_ratio / 2
        clamped += float(probability.exp()) * (log_ratio < 0)
    kl = (policy.table.exp() * (policy.table - reference.table)).sum(-1).sum(-1).mean()
    return {
        "kl, mean over all batches": mean_logged,
        "without its clamp": mean_log_ratio,
        "share of batches clamped": clamped,
        "KL(policy||reference) per sequence": float(kl),
    }


def kto_logged(policy: OnTable, reference: OnTable, written: Any, shifted: Any) -> float:
    """What ``_compute_loss`` logs as ``kl`` for a batch of two prompts."""
    prompts = torch.tensor([[0], [1]])
    ones = torch.ones(2, 3, dtype=torch.long)
    counted = torch.tensor([[0, 1, 1], [0, 1, 1]])
    stand_in = SimpleNamespace(
        accelerator=ALONE,
        args=KTOConfig(**GIVEN),
        model=policy,
        ref_model=reference,
        calculate_KL=True,
        precompute_ref_logps=False,
        aux_loss_enabled=False,
        loss_type="kto",
        beta=0.1,
        desirable_weight=1.0,
        undesirable_weight=1.0,
        _metrics={"train": defaultdict(list)},
        _total_train_tokens=0,
        _tp_size=1,
    )
    stand_in._compute_kl_logps = partial(KTOTrainer._compute_kl_logps, stand_in)
    batch = {
        "label": torch.tensor([True, False]),
        "input_ids": torch.cat([prompts, written], dim=1),
        "attention_mask": ones,
        "completion_mask": counted,
        "KL_input_ids": torch.cat([prompts, shifted], dim=1),
        "KL_attention_mask": ones,
        "KL_completion_mask": counted,
    }
    KTOTrainer._compute_loss(stand_in, policy, batch, False)
    return stand_in._metrics["train"]["kl"][0]


GRPO = "trl.trainer.grpo_trainer: GRPOTrainer._compute_loss"
GKD = "trl.experimental.gkd: GKDTrainer.generalized_jsd_loss"
DISTILLED = "trl.trainer.distillation_trainer: _chunked_divergence_loss"
BETAS = (0.0, 0.5, 1.0)
ENTRIES = (
    Entry("GRPO", grpo(), GRPO, "use_bias_correction_kl=True (default)", "loss", "method"),
    Entry(
        "GRPO, no bias correction",
        grpo(use_bias_correction_kl=False),
        GRPO,
        "use_bias_correction_kl=False",
        "loss",
        "method",
    ),
    Entry(
        "GRPO, sequence weights",
        grpo(importance_sampling_level="sequence"),
        GRPO,
        "importance_sampling_level=sequence",
        "loss",
        "method",
    ),
    Entry("GRPO with vLLM", grpo(vllm=True), GRPO, "use_vllm=True, else default", "loss", "method"),
    Entry(
        "GRPO, mean of sequences", grpo(loss_type="grpo"), GRPO, "loss_type=grpo", "loss", "method"
    ),
    Entry(
        "GMPO",
        grpo(GMPOTrainer, GMPOConfig),
        "trl.experimental.gmpo: GMPOTrainer._compute_loss",
        "",
        "loss",
        "method",
    ),
    Entry(
        "asynchronous GRPO, kl",
        async_kl,
        "trl.experimental.async_grpo: AsyncGRPOTrainer.compute_loss",
        "",
        "metric",
        "method",
    ),
    Entry(
        "RLOO",
        rloo,
        "trl.trainer.rloo_trainer: RLOOTrainer._generate_and_score_completions",
        "",
        "reward",
        "method",
    ),
    *(Entry(f"GKD {beta}", gkd(beta), GKD, f"beta={beta}", "loss") for beta in BETAS),
    *(
        Entry(f"distillation {beta}", distilled(beta), DISTILLED, f"beta={beta}", "loss")
        for beta in BETAS
    ),
)
MEASURES = (
    Measure("GKD along beta", partial(along_beta, gkd_of_a_row), GKD, ENDS),
    Measure("distillation along beta", partial(along_beta, distilled_of_a_row), DISTILLED, ENDS),
    Measure(
        "KTO kl",
        kto,
        "trl.trainer.kto_trainer: KTOTrainer._compute_loss",
        "The log-ratio of completions written for another prompt, clamped at 0 over the batch: no "
        "KL of the policy from the reference, even where the policy wrote them.",
    ),
)
