"""NeMo-RL, prime-rl, AReaL and tinker-cookbook: engine and trainer apart, often out of step."""

from __future__ import annotations

from functools import partial

from kullback.dictionary import phrases
from kullback.dictionary.metric import Choice, Metric

_MINUS = "It is minus the KL: below 0 on average."

_nemo = partial(Metric, "nemo-rl", version="2026-08-22")
_LOSSES = "nemo_rl/algorithms/loss_functions.py"
_TYPES = (
    Choice({"reference_policy_kl_type": "k1"}, "It is k1.", {"method": "k1"}),
    Choice({"reference_policy_kl_type": "k2"}, "It is k2.", {"method": "k2"}),
)
NEMO_RL: tuple[Metric, ...] = (
    _nemo(
        ("kl_penalty",),
        "the KL loss of the policy from the reference",
        "current",
        "reference",
        "old",
        "k3",
        aggregation="mean over tokens, or over sequences with sequence-level losses",
        clamp=phrases.HELD,
        use="loss",
        gradient=phrases.TOKENS,
        coefficient="reference_policy_kl_penalty",
        defaults={
            "reference_policy_kl_penalty": 0.01,
            "reference_policy_kl_type": "k3",
            "use_on_policy_kl_approximation": False,
        },
        choices=(
            Choice(
                {"use_on_policy_kl_approximation": True},
                "It is weighted by current/rollout, so it is right for the engine's tokens.",
                {"weight": "current/rollout", "sampler": "rollout", "faults": (phrases.LETS_GO,)},
            ),
            Choice(
                {"reference_policy_kl_type": "k1"},
                "It is k1.",
                {"method": "k1", "clamp": "the log-ratio at ±20, the value at ±10"},
            ),
            Choice(
                {"reference_policy_kl_type": "k2"},
                "k2 with its weight in the gradient descends another divergence.",
                {"method": "k2", "gradient": "no divergence"},
            ),
        ),
        faults=(
            "The weight current/old counts in the gradient alone: the value is unweighted.",
            phrases.LETS_GO,
        ),
        source=_LOSSES,
        verified="measured",
    ),
    _nemo(
        ("use_kl_in_reward",),
        "the KL in the reward of Reinforce++ and PPO",
        "old",
        "reference",
        "rollout",
        "k3",
        clamp=phrases.HELD,
        use="reward",
        gradient=phrases.DIFFERENCE,
        defaults={"reference_policy_kl_type": "k3"},
        choices=(
            Choice(
                {"reference_policy_kl_type": "k1"},
                "k1 in the reward is right.",
                {"method": "k1", "gradient": phrases.SEQUENCES, "faults": ()},
            ),
        ),
        faults=(phrases.FADES, phrases.LETS_GO),
        source="nemo_rl/algorithms/advantage_estimator.py",
    ),
    _nemo(
        ("gen_kl_error",),
        "k3 of the engine from the trainer",
        "rollout",
        "old",
        "rollout",
        "k3",
        defaults={"reference_policy_kl_type": "k3"},
        choices=_TYPES,
        source=_LOSSES,
        verified="measured",
    ),
    _nemo(
        ("policy_kl_error",),
        "k3 of the trainer from the engine, on the engine's tokens: the wrong sampler",
        "old",
        "rollout",
        "rollout",
        "k3",
        defaults={"reference_policy_kl_type": "k3"},
        choices=_TYPES,
        faults=(
            "Its mean is chi2(rollout||old) − KL(rollout||old), which is no KL and has a heavy "
            "tail: it is named after KL(old||rollout), and old did not sample.",
        ),
        source=_LOSSES,
        verified="measured",
    ),
    _nemo(
        ("js_divergence_error",),
        "about the Jensen–Shannon divergence of trainer and engine",
        formula="½ k3 of each from their mixture, on the engine's tokens",
        negative=False,
        faults=("The engine's tokens are no sample of the trainer: it is near the divergence.",),
        source=_LOSSES,
        verified="measured",
    ),
    _nemo(
        ("token_mult_prob_error",),
        "the mean factor between the probabilities of trainer and engine",
        formula="exp |log old − log rollout|",
        negative=False,
        faults=("It is 1 and not 0 where the two agree.",),
        source=_LOSSES,
    ),
)

_prime = partial(Metric, "prime-rl", version="2026-08-21")
_PRIME = "src/prime_rl/trainer/rl/loss.py"
PRIME_RL: tuple[Metric, ...] = (
    _prime(
        ("mismatch_kl", "mismatch_kl/all", "masked_mismatch_kl", "unmasked_mismatch_kl"),
        "k3 of the engine from the trainer",
        "rollout",
        "current",
        "rollout",
        "k3",
        aggregation="mean, and other statistics, over tokens; of those masked or not, if so named",
        faults=("Those of masked or unmasked tokens alone are selected by the ratio: no KLs.",),
        source=_PRIME,
    ),
    _prime(
        ("ref_kl",),
        "minus k1 of the policy from the reference",
        "current",
        "reference",
        "rollout",
        "k1",
        sign=-1,
        use="reward",
        gradient=phrases.TOKENS,
        faults=(
            _MINUS,
            "The engine sampled: without a weight its mean is that of no KL of current.",
        ),
        source=_PRIME,
        verified="measured",
    ),
    _prime(
        ("kl_ent_ratio",),
        "the mismatch over the entropy",
        formula="mismatch_kl / entropy",
        level="",
        aggregation="of two means",
        negative=False,
        source=_PRIME,
    ),
    _prime(
        ("kl_tau",),
        "the square of the log-ratio of policy and engine: twice k2",
        "current",
        "rollout",
        "rollout",
        formula="(log current − log rollout)²",
        negative=False,
        use="loss",
        gradient="2 KL(current||rollout), token by token, while the two agree",
        coefficient="kl_tau",
        defaults={"kl_tau": 1e-3},
        faults=("It holds the policy near the engine, not near a reference.",),
        source=_PRIME,
        verified="measured",
    ),
)

_areal = partial(Metric, "areal", version="2026-05-21")
_ACTOR = "areal/trainer/ppo/actor.py"
AREAL: tuple[Metric, ...] = (
    _areal(
        ("approx_kl",),
        "minus k1 of the update",
        "old",
        "current",
        "rollout",
        "k1",
        sign=-1,
        faults=(_MINUS,),
        source=_ACTOR,
        verified="measured",
    ),
    _areal(
        ("behave_approx_kl",),
        "minus k1 of the engine from the trainer's copy",
        "rollout",
        "old",
        "rollout",
        "k1",
        sign=-1,
        aggregation="mean over the tokens whose weight is not above the cap",
        faults=(_MINUS, "Tokens are left out by their own ratio, which bends the mean."),
        source=_ACTOR,
        verified="measured",
    ),
    _areal(
        ("kl_div_direct",),
        "k1 of the engine from the policy",
        "rollout",
        "current",
        "rollout",
        "k1",
        source=_ACTOR,
    ),
    _areal(
        ("kl_div_taylor",),
        "k2 of the engine from the policy",
        "rollout",
        "current",
        "rollout",
        "k2",
        source=_ACTOR,
    ),
    _areal(
        ("kl_div_dual",),
        "k3 of the engine from the policy",
        "rollout",
        "current",
        "rollout",
        "k3",
        source=_ACTOR,
    ),
    _areal(
        ("kl_ctl",),
        "the KL in the reward, of the old policy from the reference",
        "old",
        "reference",
        "rollout",
        "k1",
        level="",
        aggregation="at each token",
        clamp="the value at ±10",
        use="reward",
        gradient=phrases.SEQUENCES,
        coefficient="kl_ctl",
        defaults={"kl_ctl": 0.1, "kl_estimator": "k1"},
        choices=(
            Choice(
                {"kl_estimator": "k2"},
                "k2 in the reward is wrong.",
                {"method": "k2", "gradient": "no divergence"},
            ),
            Choice(
                {"kl_estimator": "k3"},
                phrases.FADES,
                {"method": "k3", "gradient": phrases.DIFFERENCE},
            ),
        ),
        source=_ACTOR,
    ),
    _areal(
        ("rkl_loss",),
        "k1 of the student from its teacher",
        "student",
        "teacher",
        "student",
        "k1",
        use="loss",
        gradient="zero",
        faults=(
            "Distilling beside RL differentiates k1 as it stands: zero on average, the teacher has "
            "no effect. Distilling alone weights it by current/old, which is right.",
        ),
        source=_ACTOR,
        verified="measured",
    ),
)

_tinker = partial(Metric, "tinker", version="0.6.1")
_METRICS = "tinker_cookbook/rl/metrics.py"
TINKER: tuple[Metric, ...] = (
    _tinker(
        ("optim/kl_sample_train_v1",),
        "k1 of the engine from the trainer",
        "rollout",
        "current",
        "rollout",
        "k1",
        source=_METRICS,
        verified="probed",
        zoo="tinker/kl_sample_train_v1",
    ),
    _tinker(
        ("optim/kl_sample_train_v2",),
        "k2 of the engine from the trainer",
        "rollout",
        "current",
        "rollout",
        "k2",
        source=_METRICS,
    ),
    _tinker(
        ("kl_pre_post_v1",),
        "k1 of the engine from the policy after the update",
        "rollout",
        "updated",
        "rollout",
        "k1",
        source=_METRICS,
    ),
    _tinker(
        ("kl_pre_post_v2",),
        "k2 of the engine from the policy after the update",
        "rollout",
        "updated",
        "rollout",
        "k2",
        source=_METRICS,
    ),
    _tinker(
        ("kl_policy_base",),
        "k1 of the policy from the base model, subtracted from the advantages",
        "rollout",
        "reference",
        "rollout",
        "k1",
        use="reward",
        gradient=phrases.TOKENS,
        coefficient="kl_penalty_coef",
        defaults={"kl_discount_factor": 0.0, "kl_penalty_coef": 0.0},
        choices=(
            Choice(
                {"kl_discount_factor": (1, 1.0)},
                "The penalty is centered before the future is summed: longer responses are paid.",
                {
                    "gradient": phrases.AT_ONE_LENGTH,
                    "zoo": "tinker/penalty, discounted",
                },
            ),
        ),
        faults=("Its docstring calls it minus the KL; it is plus.",),
        source=_METRICS,
        verified="probed",
        zoo="tinker/penalty",
    ),
    _tinker(
        ("teacher_kl",),
        "k1 of the student from its teacher",
        "student",
        "teacher",
        "student",
        "k1",
        use="reward",
        gradient="KL(student||teacher), token by token",
        defaults={"kl_discount_factor": 0.0},
        choices=(
            Choice(
                {"kl_discount_factor": (1, 1.0)},
                "Tokens are credited with all that follows.",
                {
                    "gradient": "KL(student||teacher), whole sequences",
                    "zoo": "tinker/distillation, discounted",
                },
            ),
        ),
        source="tinker_cookbook/distillation/train_on_policy.py",
        verified="probed",
        zoo="tinker/distillation",
    ),
)

DISAGGREGATED: tuple[Metric, ...] = (*NEMO_RL, *PRIME_RL, *AREAL, *TINKER)
