"""torchrl, torchtune and tunix; and what watches the logs of others."""

from __future__ import annotations

from functools import partial

from kullback.dictionary import phrases
from kullback.dictionary.metric import Choice, Metric

_PADDED = "sum over the tokens that count, over all positions, padding included"
_DILUTED = "Padding dilutes it: the same tokens in a wider batch give a smaller number."

_torchrl = partial(Metric, "torchrl", version="0.14.1")
_LLM = "torchrl/objectives/llm/grpo.py"
TORCHRL: tuple[Metric, ...] = (
    _torchrl(
        ("kl_approx",),
        "k1 of the update",
        "old",
        "current",
        "old",
        "k1",
        trainer="GRPOLoss",
        level="padded_mean",
        aggregation=_PADDED,
        faults=(_DILUTED,),
        source=_LLM,
        verified="probed",
        zoo="torchrl/GRPO, kl_approx",
    ),
    _torchrl(
        ("kl_to_ref", "loss_kl_to_ref"),
        "k3 of the policy from the reference",
        "current",
        "reference",
        "old",
        "k3",
        trainer="GRPOLoss",
        level="padded_mean",
        aggregation=_PADDED,
        use="loss",
        gradient=phrases.TURNED,
        coefficient="kl_to_ref_coeff",
        faults=(_DILUTED, phrases.NO_WEIGHT),
        source=_LLM,
        verified="probed",
        zoo="torchrl/GRPO, to the reference",
    ),
    _torchrl(
        ("kl_to_inference", "loss_kl_to_inference"),
        "k3 of the policy from the engine",
        "current",
        "rollout",
        "old",
        "k3",
        trainer="GRPOLoss",
        level="padded_mean",
        aggregation=_PADDED,
        use="loss",
        gradient="zero: the two agree",
        coefficient="kl_to_inference_coeff",
        faults=(_DILUTED,),
        source=_LLM,
        verified="probed",
        zoo="torchrl/GRPO, to inference",
    ),
    _torchrl(
        ("ESS",),
        "the effective sample size of the weights, as a count",
        formula="(Σ w)² / Σ w²",
        trainer="GRPOLoss",
        level="",
        aggregation="over all tokens",
        negative=False,
        faults=("It is a count; verl's and ms-swift's are fractions.",),
        source=_LLM,
    ),
    _torchrl(
        ("kl",),
        "the KL of the update, exact where the distributions allow it",
        "old",
        "current",
        "old",
        "exact",
        trainer="KLPENPPOLoss",
        use="loss",
        gradient="KL(old||current), token by token",
        aggregation="mean over the states",
        coefficient="beta",
        source="torchrl/objectives/ppo.py",
    ),
    _torchrl(
        ("KLComputation", "kl_penalty"),
        "k1 of the engine from the reference, in the reward",
        "rollout",
        "reference",
        "rollout",
        "k1",
        level="",
        aggregation="at each token",
        use="reward",
        gradient=phrases.SEQUENCES,
        coefficient="coeff",
        defaults={"coeff": 1.0},
        source="torchrl/envs/llm/transforms/kl.py",
        verified="probed",
        zoo="torchrl/KLComputation",
    ),
)

TORCHTUNE: tuple[Metric, ...] = (
    Metric(
        "torchtune",
        ("kl_loss",),
        "k3 of the policy from the reference",
        "current",
        "reference",
        "old",
        "k3",
        use="loss",
        gradient=phrases.TURNED,
        coefficient="kl_coeff",
        defaults={"kl_coeff": 0.1},
        faults=(phrases.NO_WEIGHT,),
        version="2026-04-23",
        source="torchtune/dev/grpo/loss.py",
    ),
)

_tunix = partial(Metric, "tunix", version="2026-08-21")
TUNIX: tuple[Metric, ...] = (
    _tunix(
        ("kl", "kl_loss"),
        "the KL loss of the policy from the reference",
        "current",
        "reference",
        "old",
        "k1",
        level="sequence_mean",
        aggregation=phrases.BY_LENGTH,
        use="loss",
        gradient="E[1 / length], whole sequences; zero at one length",
        coefficient="beta",
        defaults={
            "beta": 0.04,
            "kl_loss_mode": "kl",
            "loss_agg_mode": "sequence-mean-token-mean",
        },
        choices=(
            Choice(
                {"kl_loss_mode": "low_var_kl"},
                "It is k3, and descends the other direction.",
                {
                    "method": "k3",
                    "gradient": phrases.TURNED_AT_ONE_LENGTH,
                    "faults": (),
                },
            ),
            Choice(
                {"kl_loss_mode": "mse_kl"},
                "It is k2.",
                {
                    "method": "k2",
                    "gradient": phrases.AT_ONE_LENGTH,
                    "faults": (),
                },
            ),
            Choice(
                {"loss_agg_mode": "token-mean"},
                "All tokens count alike.",
                {"level": "token_mean", "aggregation": "mean over all tokens that count"},
            ),
            *(
                Choice(
                    {"loss_agg_mode": "token-mean", "kl_loss_mode": mode}, "", {"gradient": pulls}
                )
                for mode, pulls in (
                    ("kl", "zero"),
                    ("low_var_kl", phrases.TURNED),
                    ("mse_kl", phrases.TOKENS),
                )
            ),
        ),
        faults=(
            "k1 as a loss is no leash: its expected gradient has no reference in it. It is the "
            "default.",
        ),
        source="tunix/rl/algo_core.py",
        verified="measured",
    ),
    _tunix(
        ("ppo_kl",),
        "k1 of the update",
        "old",
        "current",
        "old",
        "k1",
        source="tunix/rl/algo_core.py",
    ),
    _tunix(
        ("rewards/reward_kl_penalty",),
        "the KL in the reward of PPO, of the old policy from the reference",
        "old",
        "reference",
        "rollout",
        "k3",
        use="reward",
        gradient=phrases.DIFFERENCE,
        coefficient="beta",
        defaults={"kl_method": "low_var_kl"},
        choices=(
            Choice(
                {"kl_method": ("kl", "k1")},
                "k1 in the reward is right.",
                {"method": "k1", "gradient": phrases.SEQUENCES, "faults": ()},
            ),
        ),
        faults=("In the reward k3 fades near the reference. It is the default.",),
        source="tunix/rl/ppo/ppo_learner.py",
        verified="measured",
    ),
    _tunix(
        ("distill/kl_div",),
        "the KL of the teacher from the student over the vocabulary, or over the top k",
        "teacher",
        "student",
        "teacher",
        "exact",
        use="loss",
        gradient="KL(teacher||student), token by token",
        aggregation="before it is multiplied by the square of the temperature",
        faults=("With a top k both sides are renormalized: no KL of the policies.",),
        source="tunix/distillation",
    ),
)

MONITORS: tuple[Metric, ...] = (
    Metric(
        "rldoctor",
        ("kl",),
        "one series for whatever the trainer logged as a KL",
        formula="actor/kl_loss, actor/ppo_kl, critic/kl, policy/approxkl, objective/kl or train/kl",
        level="",
        aggregation="as the trainer's",
        faults=(
            "It makes one series of KLs from the reference and of the update, of sums and of "
            "means: one threshold for unlike things.",
        ),
        version="0.2.0",
        source="rldoctor",
    ),
    Metric(
        "martingale",
        ("mean_abs_log_ratio",),
        "the mean absolute log-ratio",
        "rollout",
        "current",
        "rollout",
        "abs",
        aggregation="mean over the tokens of each lag between sampling and training",
        faults=(phrases.NEVER_CANCELS,),
        version="0.2.0",
        source="martingale",
        verified="not verified",
    ),
)

LIBRARIES: tuple[Metric, ...] = (*TORCHRL, *TORCHTUNE, *TUNIX, *MONITORS)
