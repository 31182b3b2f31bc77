"""What other projects call things: their column names, and which part of a dump each one is.

Read in their sources in November 2026. Several names mean different things in different projects
(``log_probs`` is the old policy in slime and the current one in ROLL), so a table belongs to its
project, and recognition asks first whose columns are there.
"""

from __future__ import annotations

from kullback.dumps.layout import canonical, family, role_of

# column -> the parts it can be. Of several, what the column holds decides. No part at all: it
# looks like one but does not line up with the log-probs (see NOT_ALIGNED).
ALIASES: dict[str, dict[str, tuple[str, ...]]] = {
    "TRL": {
        "sampling_per_token_logps": ("log_probs.rollout",),
        "old_per_token_logps": ("log_probs.old",),
        "ref_per_token_logps": ("log_probs.reference",),
        "completion_mask": ("mask",),
        "tool_mask": ("mask",),
        "completion_ids": ("tokens",),
        "prompt_ids": ("prompt",),
        "prompt": ("prompt",),
        "completion": ("text",),
    },
    "tunix": {
        "rollout_per_token_logps": ("log_probs.rollout",),
        "old_per_token_logps": ("log_probs.old",),
        "ref_per_token_logps": ("log_probs.reference",),
        "completion_mask": ("mask",),
        "completion_ids": ("tokens",),
        "prompt_ids": ("prompt",),
    },
    "verl": {
        "rollout_log_probs": ("log_probs.rollout",),
        "old_log_probs": ("log_probs.old",),
        "log_prob": ("log_probs.current",),
        "ref_log_prob": ("log_probs.reference",),
        "teacher_logprobs": ("log_probs.teacher", "top_log_probs.teacher"),
        "teacher_ids": ("top_ids.teacher",),
        "response_mask": ("mask",),
        "responses": ("tokens", "text"),
        "uid": ("prompt_id",),
        "input": ("prompt",),
        "output": ("text",),
        "input_ids": (),
        "prompts": (),
        "attention_mask": (),
    },
    "OpenRLHF": {
        "rollout_log_probs": ("log_probs.rollout",),
        "action_log_probs": ("log_probs.old",),
        "base_action_log_probs": ("log_probs.reference",),
        "action_mask": ("mask",),
        "sequences": (),
    },
    "SkyRL": {
        "rollout_logprobs": ("log_probs.rollout",),
        "action_log_probs": ("log_probs.old",),
        "base_action_log_probs": ("log_probs.reference",),
        "loss_mask": ("mask",),
        "response_mask": ("mask",),
        "sequences": (),
    },
    "prime-rl": {
        "inference_logprobs": ("log_probs.rollout",),
        "trainer_logprobs": ("log_probs.current",),
        "ref_logprobs": ("log_probs.reference",),
        "entropy": ("entropy.current",),
        "loss_mask": ("mask",),
        "token_ids": ("tokens",),
    },
    "NeMo-RL": {
        "generation_logprobs": ("log_probs.rollout",),
        "prev_logprobs": ("log_probs.old",),
        "reference_policy_logprobs": ("log_probs.reference",),
        "token_loss_mask": ("mask",),
        "sample_loss_mask": ("sequence_mask",),
        "token_ids": ("tokens",),
    },
    "slime": {
        "rollout_log_probs": ("log_probs.rollout",),
        "log_probs": ("log_probs.old",),
        "ref_log_probs": ("log_probs.reference",),
        "teacher_log_probs": ("log_probs.teacher",),
        "loss_masks": ("mask",),
        "loss_mask": ("mask",),
        "weight_versions": ("versions",),
        "group_index": ("prompt_id",),
        "prompt": ("prompt",),
        "response": ("text",),
        "tokens": (),
    },
    "ROLL": {
        "infer_logprobs": ("log_probs.rollout",),
        "old_log_probs": ("log_probs.old",),
        "log_probs": ("log_probs.current",),
        "ref_log_probs": ("log_probs.reference",),
        "response_mask": ("mask",),
        "input_ids": (),
    },
    "AReaL": {
        "logprobs": ("log_probs.rollout",),
        "old_logprobs": ("log_probs.rollout",),
        "prox_logp": ("log_probs.old",),
        "ref_logp": ("log_probs.reference",),
        "teacher_logp": ("log_probs.teacher",),
        "input_ids": (),
    },
    "tinker": {
        "logprobs": ("log_probs.rollout",),
        "training_logprobs": ("log_probs.current",),
        "target_tokens": ("tokens",),
        "mask": ("mask",),
    },
}

# Names that no project owns; they mean the same wherever they occur.
COMMON: dict[str, tuple[str, ...]] = {
    "completion": ("text",),
    "output": ("text",),
    "response": ("text",),
    "prompt": ("prompt",),
    "token_id": ("tokens",),
    "completion_ids": ("tokens",),
    "response_ids": ("tokens",),
    "global_step": ("step",),
    "train_step": ("step",),
    "training_step": ("step",),
    "temperature": ("sampling.temperature",),
    "top_p": ("sampling.top_p",),
    "top_k": ("sampling.top_k",),
    "min_p": ("sampling.min_p",),
}

# Usual names of what cuts or joins rows, by grain; they are read in files of that grain only.
CUT_NAMES: dict[str, dict[str, str]] = {
    "sequence": {},
    "batch": {"cu_seq_lens": "cu_seqlens"},
    "token": {"sequence_id": "sequence", "seq_id": "sequence", "sample_id": "sequence"},
}

# Names that say nothing by themselves: taken only beside that project's other columns.
GENERIC = frozenset({"logprobs", "log_probs", "old_logprobs", "entropy", "uid", "input"})

# Projects whose columns cannot be taken as they are, and why.
NOT_ALIGNED = {
    "AReaL": "AReaL keeps its log-probs shifted against each other by one token until the "
    "advantages are computed, and the names do not tell whether that was done",
}


def parts_of(column: str) -> set[str]:
    """All that a column of this name is in some dump; empty if nobody here knows the name.

    Example:
        >>> sorted(parts_of("log_probs")), parts_of("reward")
        (['log_probs.current', 'log_probs.old'], set())
    """
    if part := canonical(column):
        return {part}
    tables = (*ALIASES.values(), COMMON)
    return {part for table in tables for part in table.get(column, ())}


MEANINGS = {
    "log_probs.rollout": "the engine's log-probs",
    "log_probs.old": "the trainer's log-probs before the update",
    "log_probs.current": "the log-probs of the policy in training",
    "log_probs.reference": "the reference's log-probs",
    "log_probs.teacher": "the teacher's log-probs",
    "mask": "the tokens that count",
    "sequence_mask": "the sequences that count",
    "tokens": "the token ids",
    "text": "the completion",
    "prompt": "the prompt (one cluster per prompt)",
    "prompt_id": "the prompt (one cluster per prompt)",
    "versions": "the version of the weights",
    "step": "the training step",
    "sequence": "the sequence that a token belongs to",
    "cu_seqlens": "where each sequence of a packed row begins",
}


def meaning(part: str) -> str:
    """A part in words: ``the engine's log-probs``."""
    if part in MEANINGS:
        return MEANINGS[part]
    if family(part) in ("top_ids", "top_log_probs"):
        return f"the {role_of(part)}'s largest log-probs"
    return part.replace("sampling.", "the sampler's ").replace("entropy.", "the entropy of ")
