"""verl."""

from __future__ import annotations

from functools import partial
from typing import Any

from kullback.dictionary import phrases
from kullback.dictionary.metric import Choice, Metric

_WORDS = {"k1": "k1", "k2": "k2", "k3": "k3", "abs": "the absolute log-ratio"}
_verl = partial(Metric, "verl", version="0.9.1")
_LOSSES, _CORE = "verl/workers/utils/losses.py", "verl/trainer/ppo/core_algos.py"


def _type(value: Any, method: str, gradient: str, clamp: str = "", **more: Any) -> Choice:
    said = f"It is {_WORDS[method]}{', with the gradient of k2' if '+' in str(value) else ''}."
    changes = {"method": method, "clamp": clamp, "gradient": gradient, "faults": (), **more}
    return Choice({"actor.kl_loss_type": value}, said, changes)


_TYPES = (
    _type(
        ("kl", "k1"),
        "k1",
        "zero",
        faults=("It is no leash: with samples of an older policy it drives away from that one.",),
        zoo="verl/loss k1",
    ),
    _type("abs", "abs", "no divergence", zoo="verl/loss abs"),
    _type(("mse", "k2"), "k2", phrases.TOKENS, zoo="verl/loss k2"),
    _type(("kl+", "k1+"), "k1", phrases.TOKENS, zoo="verl/loss k1+"),
    _type("abs+", "abs", phrases.TOKENS, zoo="verl/loss abs+"),
    _type(("mse+", "k2+"), "k2", phrases.TOKENS, zoo="verl/loss k2+"),
    _type(("low_var_kl+", "k3+"), "k3", phrases.TOKENS, phrases.HELD, zoo="verl/loss low_var_kl+"),
)
_BY_LENGTH = {"level": "sequence_mean", "aggregation": "mean of each sequence, mean over those"}
_K3, _K1 = ("low_var_kl", "k3"), ("kl", "k1")
_AGGREGATIONS = (
    Choice(
        {"actor.loss_agg_mode": "token-sum"},
        "It is a sum over all tokens.",
        {"level": "sum", "aggregation": "sum over all tokens"},
    ),
    Choice(
        {"actor.loss_agg_mode": "seq-mean-token-sum"},
        "It is per sequence.",
        {"level": "sequence_sum", "aggregation": "sum over the tokens, mean over sequences"},
    ),
    Choice(
        {"actor.loss_agg_mode": "seq-mean-token-sum-norm"},
        "It is divided by all positions, padding included.",
        {"level": "padded_mean", "aggregation": "sum over the tokens, over all positions"},
    ),
    Choice(
        {"actor.loss_agg_mode": "seq-mean-token-mean"},
        "Each sequence is divided by its own length, which bends the gradient.",
        {**_BY_LENGTH, "gradient": "no divergence where lengths differ"},
    ),
    Choice(
        {"actor.loss_agg_mode": "seq-mean-token-mean", "actor.kl_loss_type": _K3},
        "",
        {
            "gradient": phrases.TURNED_AT_ONE_LENGTH,
            "zoo": "verl/loss low_var_kl, seq-mean-token-mean",
        },
    ),
    Choice(
        {"actor.loss_agg_mode": "seq-mean-token-mean", "actor.kl_loss_type": _K1},
        "Training on it makes responses longer.",
        {
            "gradient": "E[1 / length], whole sequences",
            "zoo": "verl/loss k1, seq-mean-token-mean",
        },
    ),
)

_LOSS = _verl(
    ("actor/kl_loss",),
    "the KL loss of the policy from the reference",
    "current",
    "reference",
    "old",
    "k3",
    aggregation="mean over all tokens of a minibatch: its micro-batches are added up",
    clamp=phrases.HELD,
    use="loss",
    gradient=phrases.TURNED,
    coefficient="actor.kl_loss_coef",
    defaults={
        "actor.use_kl_loss": False,
        "actor.kl_loss_coef": 0.001,
        "actor.kl_loss_type": "low_var_kl",
        "actor.loss_agg_mode": "token-mean",
    },
    choices=(
        Choice({"actor.use_kl_loss": False}, "It is not computed: use_kl_loss is False."),
        *_TYPES,
        *_AGGREGATIONS,
    ),
    faults=(
        phrases.LETS_GO,
        "No weight: a KL while current is still the policy that sampled, so in the first "
        "minibatch; rollout weights go to the policy loss alone.",
    ),
    source=_LOSSES,
    verified="probed",
    zoo="verl/loss low_var_kl",
)


def _penalty(value: Any, method: str, gradient: str, clamp: str = "", zoo: str = "") -> Choice:
    said = f"It is {_WORDS[method]}."
    changes: dict[str, Any] = {"method": method, "clamp": clamp, "gradient": gradient, "zoo": zoo}
    if method == "k3":
        changes["faults"] = (
            phrases.LETS_GO,
            "In the reward k3 fades near the reference: 16, 3 and 0.6 % of the pull of the KL at "
            "logits 0.5, 0.1 and 0.02 away.",
        )
    return Choice({"algorithm.kl_penalty": value}, said, changes)


_NEAR = "no divergence"
_REWARD = _verl(
    ("actor/reward_kl_penalty",),
    "the KL penalty in the reward, of the old policy from the reference",
    "old",
    "reference",
    "rollout",
    "k1",
    level="sequence_mean",
    aggregation=phrases.BY_LENGTH,
    use="reward",
    gradient=phrases.SEQUENCES,
    coefficient="algorithm.kl_ctrl.kl_coef",
    defaults={
        "algorithm.use_kl_in_reward": False,
        "algorithm.kl_penalty": "kl",
        "algorithm.kl_ctrl.kl_coef": 0.001,
        "algorithm.kl_ctrl.type": "fixed",
    },
    choices=(
        Choice(
            {"algorithm.use_kl_in_reward": False}, "It is not computed: use_kl_in_reward is False."
        ),
        _penalty("abs", "abs", _NEAR, zoo="verl/reward abs"),
        _penalty(("mse", "k2"), "k2", _NEAR, zoo="verl/reward mse"),
        _penalty(
            ("low_var_kl", "k3"), "k3", phrases.DIFFERENCE, phrases.HELD, "verl/reward low_var_kl"
        ),
        _penalty(
            ("low_var_kl+", "k3+"),
            "k3",
            phrases.DIFFERENCE,
            phrases.HELD,
            "verl/reward low_var_kl+",
        ),
        Choice(
            {"algorithm.kl_ctrl.type": "adaptive"},
            "The controller compares this mean, in nats per token, with target_kl; the rule that "
            "it cites is in nats per sequence.",
        ),
    ),
    faults=("The engine sampled, and nothing corrects old for it.",),
    source="verl/trainer/ppo/ray_trainer.py",
    verified="probed",
    zoo="verl/reward kl",
)
_DRIFT = (
    _verl(
        ("actor/ppo_kl",),
        "k1 of the update",
        "old",
        "current",
        "old",
        "k1",
        aggregation="mean over the tokens of a micro-batch, mean over micro-batches",
        clamp="the log-ratio at ±20",
        defaults={"policy_loss.loss_mode": "vanilla"},
        choices=(
            Choice(
                {"policy_loss.loss_mode": "kl_cov"},
                "kl_cov logs the mean of the absolute log-ratio.",
                {"method": "abs", "negative": False, "zoo": "", "verified": "read"},
            ),
            Choice(
                {"rollout_correction.bypass_mode": True},
                "In bypass mode the engine stands in for old.",
                {"p": "rollout", "sampler": "rollout", "zoo": "", "verified": "read"},
            ),
        ),
        faults=("Short micro-batches count as much as long ones.",),
        source=_CORE,
        verified="probed",
        zoo="verl/ppo_kl",
    ),
    _verl(
        ("rollout_corr/kl",),
        "k1 of the engine from the trainer's copy",
        "rollout",
        "old",
        "rollout",
        "k1",
        source="verl/trainer/ppo/rollout_corr_helper.py",
        verified="probed",
        zoo="verl/rollout_corr kl",
    ),
    _verl(
        ("rollout_corr/k3_kl",),
        "k3 of the engine from the trainer's copy",
        "rollout",
        "old",
        "rollout",
        "k3",
        source="verl/trainer/ppo/rollout_corr_helper.py",
        verified="probed",
        zoo="verl/rollout_corr k3_kl",
    ),
    _verl(
        ("rollout_corr/chi2_token",),
        "χ² of the trainer's copy from the engine, per token",
        "rollout",
        "old",
        "rollout",
        formula="ρ² − 1, ρ = old/rollout",
        clamp="log ρ at ±20",
        source="verl/trainer/ppo/rollout_corr_helper.py",
    ),
    _verl(
        ("rollout_corr/chi2_seq",),
        "χ² of the trainer's copy from the engine, of whole sequences",
        "rollout",
        "old",
        "rollout",
        formula="ρ² − 1, ρ the product of old/rollout over the sequence",
        level="sequence_sum",
        aggregation="mean over sequences",
        clamp="log ρ at ±20: the number goes up to e^40",
        faults=("ms-swift's number of this name takes the geometric mean of the ratios.",),
        source="verl/trainer/ppo/rollout_corr_helper.py",
        verified="measured",
    ),
    _verl(
        ("rollout_corr/rollout_is_eff_sample_size",),
        "the effective sample size of the weights, as a fraction",
        formula="1 / mean of w², w = truncated weight over its mean",
        level="",
        aggregation="over all tokens, also where weights are per sequence",
        negative=False,
        faults=("It is of the weights after they were cut off, so it cannot see what was cut.",),
        source="verl/trainer/ppo/rollout_corr_helper.py",
    ),
    _verl(
        (
            "training/rollout_probs_diff_max",
            "training/rollout_probs_diff_mean",
            "training/rollout_probs_diff_std",
        ),
        "the absolute difference of probabilities of trainer and engine",
        formula="|old − rollout|, as probabilities",
        aggregation="largest, mean and standard deviation over tokens",
        negative=False,
        faults=("Its docstring calls it a difference of log-probs.",),
        source="verl/utils/debug/metrics.py",
    ),
    _verl(
        ("training/rollout_actor_probs_pearson_corr",),
        "the correlation of the probabilities of trainer and engine",
        formula="Pearson's correlation of the probabilities old and rollout",
        level="",
        aggregation="over all tokens",
        negative=True,
        source="verl/utils/debug/metrics.py",
    ),
)
_SET = (
    _verl(
        ("actor/kl_coef",),
        "what the KL loss is multiplied by",
        formula="kl_loss_coef",
        level="",
        aggregation="none",
        negative=False,
        use="coefficient",
        source=_LOSSES,
    ),
    _verl(
        ("actor/reward_kl_penalty_coeff",),
        "what the KL in the reward is multiplied by",
        formula="kl_coef of the controller",
        level="",
        aggregation="none",
        negative=False,
        use="coefficient",
        source="verl/trainer/ppo/ray_trainer.py",
    ),
)
_DISTILLATION = (
    _verl(
        ("distillation/loss",),
        "the loss of the student from its teacher",
        "student",
        "teacher",
        "student",
        "k3",
        clamp=phrases.HELD,
        use="loss",
        gradient="KL(teacher||student), token by token",
        defaults={
            "distillation_loss.loss_mode": "k3",
            "distillation_loss.use_policy_gradient": False,
        },
        choices=(
            Choice(
                {
                    "distillation_loss.loss_mode": "k3",
                    "distillation_loss.use_policy_gradient": True,
                },
                "As a reward k3 fades near the teacher; its docstring recommends k1 there.",
                {
                    "use": "reward",
                    "gradient": "KL(student||teacher) - KL(teacher||student), token by token",
                    "zoo": "verl/distillation, policy gradient, k3",
                },
            ),
            Choice(
                {
                    "distillation_loss.loss_mode": "k1",
                    "distillation_loss.use_policy_gradient": True,
                },
                "k1 as a reward is right.",
                {
                    "method": "k1",
                    "clamp": "",
                    "use": "reward",
                    "gradient": "KL(student||teacher), token by token",
                    "zoo": "verl/distillation, policy gradient, k1",
                },
            ),
            Choice(
                {"distillation_loss.loss_mode": "forward_kl_topk"},
                "The terms of the teacher's k likeliest tokens, neither renormalized nor with a "
                "term for the rest: no KL, nor a bound of one.",
                {
                    "p": "",
                    "q": "",
                    "method": "other",
                    "formula": "max(0, Σ over the teacher's k likeliest of teacher · (log teacher "
                    "− log student))",
                    "negative": False,
                    "clamp": "log-probs at −10, the sum at 0, the loss at 10",
                    "gradient": "no divergence",
                    "zoo": "",
                },
            ),
        ),
        faults=(
            "use_policy_gradient is True in the dataclass and false in the YAML file.",
            phrases.LETS_GO,
        ),
        source="verl/trainer/distillation/losses.py",
        verified="probed",
        zoo="verl/distillation, supervised",
    ),
    _verl(
        ("distillation/abs_loss",),
        "the mean size of the distillation loss of a token",
        formula="|loss of the token|",
        negative=False,
        source="verl/trainer/distillation/losses.py",
    ),
    _verl(
        ("distillation/student_mass", "distillation/teacher_mass"),
        "the probability of the teacher's k likeliest tokens, under student or teacher",
        formula="Σ over the k likeliest of the probability",
        negative=False,
        source="verl/trainer/distillation/losses.py",
    ),
)

VERL: tuple[Metric, ...] = (_LOSS, _REWARD, *_DRIFT, *_SET, *_DISTILLATION)
