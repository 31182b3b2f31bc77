"""What was said of these terms before they were probed, and who is right where they differ.

Read in the sources of the same releases, and most of it measured on one token of six, with
gradients by hand; a claim is about the policy's own samples unless it says so.
"""

from __future__ import annotations

from dataclasses import dataclass

AHEAD, BACK = "KL(current||reference)", "KL(reference||current)"
APART = f"{AHEAD} - {BACK}"
NONE = "none"  # the gradient of no divergence


@dataclass(frozen=True)
class Claim:
    """What a term was said to be; None where nothing was said.

    Args:
        value: Its formula and what that estimates.
        gradient: What it descends on the policy's own samples.
        stale: The same on those of an older policy.
    """

    value: str | None = None
    gradient: str | None = None
    stale: str | None = None


def _k3(gradient: str | None = None, stale: str | None = None) -> Claim:
    return Claim(f"k3 of {AHEAD}", gradient, stale)


def _whole(of: str) -> Claim:
    return Claim(f"{of}, exact")


CLAIMS: dict[str, dict[str, Claim]] = {
    "trl": {
        "GRPO": _k3(AHEAD, stale=AHEAD),
        "GRPO, no bias correction": _k3(BACK),
        "GRPO, sequence weights": _k3(),
        "GRPO with vLLM": _k3(AHEAD, stale=AHEAD),
        "GMPO": _k3(BACK),
        "asynchronous GRPO, kl": Claim("k3 of KL(rollout||current)"),
        "RLOO": Claim(f"k1 of {AHEAD.replace('current', 'old')}", AHEAD),
        "GKD 0.0": _whole(BACK),
        "GKD 1.0": _whole(AHEAD),
        "GKD 0.5": Claim("JS"),
        "distillation 0.0": _whole(BACK),
        "distillation 1.0": _whole(AHEAD),
        "distillation 0.5": Claim("JS"),
    },
    "verl": {
        "actor loss": _k3(BACK, stale=NONE),
        "loss k1": Claim(f"k1 of {AHEAD}", "zero", "minus KL(old||current)"),
        "loss k1, seq-mean-token-mean": Claim(f"k1 of {AHEAD}", "zero"),
        "loss k2": Claim("k2 of current and reference", AHEAD),
        "loss low_var_kl": _k3(BACK),
        "loss k1+": Claim(f"k1 of {AHEAD}", AHEAD, stale=NONE),
        "loss low_var_kl+": _k3(AHEAD, stale=NONE),
        "reward kl": Claim("k1 of KL(old||reference)", AHEAD),
        "reward abs": Claim("|log r| of old and reference", NONE),
        "reward mse": Claim("k2 of old and reference", NONE),
        "reward low_var_kl": Claim("k3 of KL(old||reference)", APART),
        "distillation, supervised": _k3(BACK),
        "distillation, policy gradient, k3": Claim(None, APART),
        "distillation, policy gradient, k1": Claim(None, AHEAD),
        "ppo_kl": Claim("k1 of KL(old||current)"),
        "rollout_corr kl": Claim("k1 of KL(rollout||old)"),
        "rollout_corr k3_kl": Claim("k3 of KL(rollout||old)"),
    },
    "openrlhf": {
        "loss k1": Claim(f"k1 of {AHEAD}", "zero"),
        "loss k2": Claim("k2 of current and reference", AHEAD),
        "loss k3": _k3(BACK),
        "loss k1, unbiased gradient": Claim(f"k1 of {AHEAD}", AHEAD, AHEAD),
        "loss k2, unbiased gradient": Claim("k2 of current and reference", AHEAD, AHEAD),
        "loss k3, unbiased gradient": _k3(AHEAD, AHEAD),
        "reward k1": Claim("k1 of KL(old||reference)", AHEAD),
        "reward k2": Claim("k2 of old and reference", NONE),
        "reward k3": Claim("k3 of KL(old||reference)", APART),
        "ppo_kl": Claim("k1 of KL(old||current)"),
    },
    "torchrl": {
        "GRPO, to the reference": _k3(BACK),
        "GRPO, to inference": Claim("k3 of KL(current||rollout)"),
        "GRPO, kl_approx": Claim("k1 of KL(old||current)"),
        "KLComputation": Claim("k1 of KL(rollout||reference)", AHEAD),
        "k3_kl_token_estimate, of the student": _k3(BACK),
        "k3_kl_token_estimate, of the teacher": Claim(
            "k3 of KL(old||current)", None, "KL(old||current)"
        ),
    },
    "liger": {
        "GRPO": _k3(BACK),
        "GRPO, bias correction": _k3(AHEAD, stale=AHEAD),
        "k3_loss_fn": _k3(BACK),
        "JSD 0.0": _whole(BACK),
        "JSD 1.0": _whole(AHEAD),
        "JSD 0.5": Claim("JS"),
    },
    "tinker": {
        "penalty": Claim(None, AHEAD),
        "penalty, discounted": Claim(None, AHEAD),
        "distillation": Claim(None, AHEAD),
        "kl_sample_train_v1": Claim("k1 of KL(rollout||current)"),
    },
    "sb3": {"PPO approx_kl": Claim("k3 of KL(old||current)")},
}

_BY_LENGTH = (
    "in part. It holds where all sequences have one length. Where a token can end one, each "
    "token is divided by the length that its sequence came to have, and the gradient is that of no "
    "divergence, if close to it."
)
# Who is right, for each claim that is not what was measured.
VERDICTS: dict[str, dict[str, str]] = {
    "trl": {"GMPO": _BY_LENGTH},
    "verl": {
        "loss k1, seq-mean-token-mean": (
            "no. Zero is right for the means over tokens that were measured. Here each sequence is "
            "divided by its own length, and what is left is the gradient of E[1/length] (checked "
            "by enumeration, to 2e-9): it makes responses longer, and sees no reference."
        ),
    },
    "openrlhf": {},
    "torchrl": {},
    "liger": {},
    "tinker": {
        "penalty, discounted": (
            "in part. It holds where all sequences have one length. The penalty is "
            "centered on the mean per token of the batch before the future is summed, so a token "
            "is credited that mean for every token that follows it: what is descended is the KL of "
            "the sequences less that mean times E[length] (checked by enumeration, to 4e-8)."
        ),
    },
    "sb3": {},
}

# The same for what is measured without the auditor: what was said, and who is right.
OF_MEASURES: dict[str, dict[str, tuple[str, str]]] = {
    "trl": {
        "GKD along beta": (
            "The scale is not continuous: full KLs at 0 and 1, next to nothing beside them.",
            "yes",
        ),
        "KTO kl": (
            "Not a KL of the policy from the reference; the clamp biases it upwards.",
            "yes",
        ),
    },
    "verl": {
        "low_var_kl at a hole": (
            "The mean is 0 % off at a ratio of 10, 80 % below the KL at 100.",
            "yes",
        ),
        "the reward near the reference": (
            "low_var_kl pulls with 15, 3 and 0.6 % of the KL's strength at these distances.",
            "yes",
        ),
        "forward_kl_topk along k": (
            "A biased lower part of KL(teacher||student).",
            "no. It is partial and biased, but not lower: the terms left out can be negative, and "
            "for k from 2 to 4 it is above the KL, by up to 29 %.",
        ),
    },
}
