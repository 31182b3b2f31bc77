"""SkyRL, slime and ROLL: an engine samples, a trainer scores again and updates."""

from __future__ import annotations

from functools import partial

from kullback.dictionary.metric import Choice, Metric

_TURNED = "KL(reference||current), token by token"
_SEQUENCES = "KL(current||reference), whole sequences"
_DIFFERENCE = "KL(current||reference) - KL(reference||current), the latter token by token"
_BY_LENGTH = "mean over the tokens of a sequence, then over sequences"
_ONE_LENGTH = "no divergence; KL(reference||current) at one length"
_AT_TEN = "the value at 10, which is a ratio of 13.6"
_LETS_GO = "The clamp lets go of tokens that the reference finds 13.6 times likelier."
_NO_LEASH = "k1 as a loss is no leash: its expected gradient has no reference in it."
_NO_WEIGHT = "No weight: a KL while current is still the policy that sampled."

_sky = partial(Metric, "skyrl", version="2026-08-21")
SKYRL: tuple[Metric, ...] = (
    _sky(
        ("policy_kl",),
        "the KL loss of the policy from the reference",
        "current",
        "reference",
        "old",
        "k3",
        level="sequence_mean",
        aggregation=f"{_BY_LENGTH}, whatever loss_reduction says",
        clamp=f"the log-ratio at ±20, {_AT_TEN}",
        use="loss",
        gradient=_ONE_LENGTH,
        coefficient="kl_loss_coef",
        defaults={"use_kl_loss": True, "kl_loss_coef": 0.001, "kl_estimator_type": "k3"},
        choices=(
            Choice({"use_kl_loss": False}, "It is not trained on: use_kl_loss is False."),
            Choice(
                {"kl_estimator_type": "k1"},
                _NO_LEASH,
                {
                    "method": "k1",
                    "clamp": "the log-ratio at ±20",
                    "gradient": "E[1 / length], whole sequences",
                },
            ),
            Choice(
                {"kl_estimator_type": "k2"},
                "It is k2.",
                {
                    "method": "k2",
                    "clamp": "the log-ratio at ±20",
                    "gradient": "no divergence; KL(current||reference) at one length",
                },
            ),
            Choice(
                {"kl_estimator_type": "abs"},
                "It is the absolute log-ratio.",
                {"method": "abs", "clamp": "the log-ratio at ±20", "gradient": "no divergence"},
            ),
        ),
        faults=(_LETS_GO, _NO_WEIGHT),
        source="skyrl/backends/skyrl_train/workers/worker.py",
    ),
    _sky(
        ("loss/avg_kl", "loss/avg_kl_max"),
        "the KL in the reward, of the old policy from the reference",
        "old",
        "reference",
        "rollout",
        "k3",
        level="sequence_mean",
        aggregation=f"{_BY_LENGTH}; the largest of a sequence, mean over sequences",
        clamp=f"the log-ratio at ±20, {_AT_TEN}",
        use="reward",
        gradient=_DIFFERENCE,
        coefficient="kl_loss_coef",
        defaults={"use_kl_in_reward": False, "kl_estimator_type": "k3"},
        choices=(
            Choice({"use_kl_in_reward": False}, "It is not in the reward."),
            Choice(
                {"kl_estimator_type": "k1"},
                "k1 in the reward is right.",
                {
                    "method": "k1",
                    "clamp": "the log-ratio at ±20",
                    "gradient": _SEQUENCES,
                    "faults": (),
                },
            ),
        ),
        faults=("In the reward k3 fades near the reference.", _LETS_GO),
        source="skyrl/train/trainer.py",
        verified="measured",
    ),
    _sky(
        (
            "policy/rollout_train_logprobs_abs_diff_mean",
            "policy/rollout_train_logprobs_abs_diff_std",
        ),
        "the absolute difference of log-probs of trainer and engine",
        "rollout",
        "old",
        "rollout",
        "abs",
        faults=("It is no KL: it is about the square root of one, and never cancels.",),
        source="skyrl/train/trainer.py",
    ),
)

_slime = partial(Metric, "slime", version="2026-08-21")
_MEGATRON = "slime/backends/megatron_utils/loss.py"
SLIME: tuple[Metric, ...] = (
    _slime(
        ("train/kl_loss",),
        "the KL loss of the policy from the reference",
        "current",
        "reference",
        "old",
        "k1",
        level="sequence_mean",
        aggregation=_BY_LENGTH,
        use="loss",
        gradient="E[1 / length], whole sequences; zero at one length",
        coefficient="kl_loss_coef",
        defaults={"use_kl_loss": False, "kl_loss_type": "k1", "use_unbiased_kl": False},
        choices=(
            Choice({"use_kl_loss": False}, "It is not computed: use_kl_loss is False."),
            Choice(
                {"kl_loss_type": "k2", "use_unbiased_kl": False},
                "It is k2.",
                {
                    "method": "k2",
                    "gradient": "no divergence; KL(current||reference) at one length",
                    "faults": (_NO_WEIGHT,),
                },
            ),
            Choice(
                {"kl_loss_type": ("k3", "low_var_kl"), "use_unbiased_kl": False},
                "It is k3; low_var_kl is clamped at 10.",
                {"method": "k3", "gradient": _ONE_LENGTH, "faults": (_NO_WEIGHT,)},
            ),
            Choice(
                {"kl_loss_type": ("k3", "low_var_kl"), "use_unbiased_kl": True},
                "It is k3 weighted by current/old, the weight in the gradient.",
                {
                    "method": "k3",
                    "weight": "current/old",
                    "gradient": "no divergence; KL(current||reference) at one length",
                    "faults": (),
                },
            ),
            Choice(
                {"kl_loss_type": "k1", "use_unbiased_kl": True},
                "It is k1 weighted by current/old, the weight in the gradient.",
                {
                    "weight": "current/old",
                    "gradient": "no divergence; KL(current||reference) at one length",
                    "faults": (),
                },
            ),
            Choice(
                {"kl_loss_type": "k2", "use_unbiased_kl": True},
                "k2 with its weight in the gradient descends another divergence.",
                {
                    "method": "k2",
                    "weight": "current/old",
                    "gradient": "no divergence",
                    "faults": (),
                },
            ),
            Choice(
                {"kl_loss_type": "low_var_kl"},
                "",
                {"clamp": "the value at 10, behind the weight if there is one"},
            ),
        ),
        faults=(_NO_LEASH, _NO_WEIGHT),
        source=_MEGATRON,
        verified="measured",
    ),
    _slime(
        ("train/ppo_kl",),
        "k1 of the update",
        "old",
        "current",
        "old",
        "k1",
        level="sequence_mean",
        aggregation=f"{_BY_LENGTH}; with gspo the mean of its sequence at every token",
        source=_MEGATRON,
    ),
    _slime(
        ("kl_coef",),
        "the KL in the reward, of the old policy from the reference",
        "old",
        "reference",
        "rollout",
        "k1",
        use="reward",
        gradient=_SEQUENCES,
        coefficient="kl_coef",
        defaults={"kl_coef": 0.0},
        choices=(
            Choice(
                {"advantage_estimator": ("grpo", "gspo", "cispo")},
                "With this advantage estimator --kl-coef has no effect: the KL gives a shape only.",
                {"gradient": "nothing"},
            ),
        ),
        faults=("With grpo, gspo or cispo --kl-coef has no effect.",),
        source=_MEGATRON,
    ),
    _slime(
        ("train/train_rollout_logprob_abs_diff",),
        "the absolute difference of log-probs of trainer and engine",
        "rollout",
        "old",
        "rollout",
        "abs",
        level="sequence_mean",
        aggregation=_BY_LENGTH,
        faults=("It is no KL: it is about the square root of one, and never cancels.",),
        source=_MEGATRON,
    ),
    _slime(
        ("train/tis",),
        "the ratio of trainer to engine, before it is cut off",
        "rollout",
        "old",
        "rollout",
        "ratio",
        formula="old/rollout",
        level="sequence_mean",
        aggregation=_BY_LENGTH,
        negative=False,
        source=_MEGATRON,
    ),
    _slime(
        ("train/tis_abs",),
        "how far the ratio of trainer to engine is from 1",
        "rollout",
        "old",
        "rollout",
        formula="|old/rollout − 1|",
        level="sequence_mean",
        aggregation=_BY_LENGTH,
        negative=False,
        source=_MEGATRON,
    ),
    _slime(
        ("train/ois",),
        "the ratio of the update",
        "old",
        "current",
        "old",
        "ratio",
        formula="current/old = exp(−ppo_kl)",
        level="sequence_mean",
        aggregation=_BY_LENGTH,
        negative=False,
        source=_MEGATRON,
    ),
    _slime(
        ("train/opd_reverse_kl",),
        "k1 of the student from its teacher",
        "student",
        "teacher",
        "student",
        "k1",
        level="sequence_mean",
        aggregation=_BY_LENGTH,
        use="reward",
        gradient="KL(student||teacher), token by token",
        source=_MEGATRON,
    ),
)

_roll = partial(Metric, "roll", version="2026-08-19")
ROLL: tuple[Metric, ...] = (
    _roll(
        ("actor/kl_loss", "actor/kl_loss@sum"),
        "k3 of the policy from the reference, logged even where it is not trained on",
        "current",
        "reference",
        "old",
        "k3",
        aggregation="as loss_agg_mode says",
        clamp=_AT_TEN,
        use="loss",
        gradient=_TURNED,
        coefficient="kl_loss_coef",
        defaults={"use_kl_loss": False, "kl_loss_coef": 0.0},
        choices=(
            Choice({"use_kl_loss": False}, "It is logged, and not trained on."),
            Choice(
                {"loss_agg_mode": "seq-mean-token-mean"},
                "Each sequence is divided by its own length, which bends the gradient.",
                {"level": "sequence_mean", "aggregation": _BY_LENGTH, "gradient": _ONE_LENGTH},
            ),
            Choice(
                {"loss_agg_mode": "seq-mean-token-sum"},
                "It is per sequence.",
                {
                    "level": "sequence_sum",
                    "aggregation": "sum over the tokens, mean over sequences",
                },
            ),
        ),
        faults=("kl_penalty does not change it: it is k3 always.", _LETS_GO, _NO_WEIGHT),
        source="roll/pipeline/base_worker.py",
        verified="measured",
    ),
    _roll(
        ("actor/approxkl",),
        "k2 of the update",
        "old",
        "current",
        "old",
        "k2",
        source="roll/pipeline/base_worker.py",
    ),
    _roll(
        ("actor/policykl",),
        "minus k1 of the update",
        "old",
        "current",
        "old",
        "k1",
        sign=-1,
        faults=("It is minus the KL: below 0 on average.",),
        source="roll/pipeline/base_worker.py",
        verified="measured",
    ),
    _roll(
        ("critic/kl",),
        "the KL in the reward, of the old policy from the reference",
        "old",
        "reference",
        "rollout",
        "k1",
        level="sequence_mean",
        aggregation=_BY_LENGTH,
        use="reward",
        gradient=_SEQUENCES,
        coefficient="init_kl_coef",
        defaults={"add_token_level_kl": False, "kl_penalty": "kl", "init_kl_coef": 0.2},
        choices=(
            Choice(
                {"add_token_level_kl": False},
                "It is not in the reward, whatever init_kl_coef is; the controller updates anyway.",
            ),
            Choice(
                {"kl_penalty": ("mse", "k2")},
                "It is k2.",
                {"method": "k2", "gradient": "no divergence"},
            ),
            Choice(
                {"kl_penalty": "abs"},
                "It is the absolute log-ratio.",
                {"method": "abs", "gradient": "no divergence"},
            ),
            Choice(
                {"kl_penalty": ("low_var_kl", "k3")},
                "In the reward k3 fades near the reference.",
                {"method": "k3", "clamp": _AT_TEN, "gradient": _DIFFERENCE},
            ),
        ),
        faults=('kl_penalty "full" sums over time, not over the vocabulary.',),
        source="roll/utils/functionals.py",
    ),
    _roll(
        ("critic/kl_coef",),
        "what the KL in the reward is multiplied by",
        formula="the controller's coefficient",
        level="",
        aggregation="none",
        negative=False,
        use="coefficient",
        faults=("It moves even where add_token_level_kl is off and nothing is multiplied.",),
        source="roll/utils/functionals.py",
    ),
)

RAY_TRAINERS: tuple[Metric, ...] = (*SKYRL, *SLIME, *ROLL)
