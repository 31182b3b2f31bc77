"""OpenRLHF."""

from __future__ import annotations

from functools import partial
from typing import Any

from kullback.dictionary import phrases
from kullback.dictionary.metric import Choice, Metric

_orl = partial(Metric, "openrlhf", version="0.11.2")


def _estimator(method: str, gradient: str, *, loss: bool, unbiased: bool = False) -> Choice:
    when: dict[str, Any] = {"kl.estimator": method, "kl.use_loss": loss}
    changes: dict[str, Any] = {"method": method, "gradient": gradient}
    changes["clamp"] = "the log-ratio at ±10" if method == "k1" else "the value at 10"
    changes["zoo"] = f"openrlhf/{'loss' if loss else 'reward'} {method}"
    if loss:
        when["kl.unbiased_gradient"] = unbiased
        changes |= {"p": "current", "use": "loss", "sampler": "old"}
        changes |= {"level": "token_mean", "aggregation": "as the loss is averaged"}
        changes["zoo"] += ", unbiased gradient" if unbiased else ""
        changes["faults"] = (*[phrases.NO_LEASH] * (method == "k1"), phrases.NO_WEIGHT)
    where = "the loss" if loss else "the reward"
    more = ", its gradient that of weighted k2" if unbiased else ""
    return Choice(when, f"It is {method} in {where}{more}.", changes)


OPENRLHF: tuple[Metric, ...] = (
    _orl(
        ("kl",),
        "the KL term of the policy from the reference, in the reward unless use_loss is set",
        "old",
        "reference",
        "rollout",
        "k1",
        level="sequence_mean",
        aggregation=phrases.BY_LENGTH,
        clamp="the log-ratio at ±10",
        use="reward",
        gradient=phrases.SEQUENCES,
        coefficient="kl.init_coef",
        defaults={
            "kl.estimator": "k1",
            "kl.use_loss": False,
            "kl.unbiased_gradient": False,
            "kl.init_coef": 0.01,
        },
        choices=(
            _estimator(
                "k2",
                "no divergence",
                loss=False,
            ),
            _estimator("k3", phrases.DIFFERENCE, loss=False),
            _estimator("k1", "zero", loss=True),
            _estimator("k2", phrases.TOKENS, loss=True),
            _estimator("k3", phrases.TURNED, loss=True),
            _estimator("k1", phrases.TOKENS, loss=True, unbiased=True),
            _estimator("k2", phrases.TOKENS, loss=True, unbiased=True),
            _estimator("k3", phrases.TOKENS, loss=True, unbiased=True),
        ),
        faults=("The value is not weighted for the policy that sampled.",),
        source="openrlhf/trainer/ppo_utils/experience_maker.py, openrlhf/models/utils.py",
        verified="probed",
        zoo="openrlhf/reward k1",
    ),
    _orl(
        ("logprobs_diff",),
        "k1 of the policy from the reference, whatever the estimator is",
        "old",
        "reference",
        "rollout",
        "k1",
        level="sequence_mean",
        aggregation=phrases.BY_LENGTH,
        defaults={"kl.use_loss": False},
        choices=(
            Choice(
                {"kl.use_loss": True},
                "In the loss it is of the policy as it is, over all tokens.",
                {
                    "p": "current",
                    "sampler": "old",
                    "level": "token_mean",
                    "aggregation": "mean over all tokens that count",
                },
            ),
        ),
        source="openrlhf/trainer/ppo_utils/experience_maker.py, openrlhf/trainer/ray/ppo_actor.py",
    ),
    _orl(
        ("ppo_kl",),
        "k1 of the update",
        "old",
        "current",
        "old",
        "k1",
        source="openrlhf/models/loss.py",
        verified="probed",
        zoo="openrlhf/ppo_kl",
    ),
    _orl(
        ("vllm_kl",),
        "k1 of the engine from the trainer's copy",
        "rollout",
        "old",
        "rollout",
        "k1",
        source="openrlhf/models/loss.py",
    ),
)
