"""Stable-Baselines3, CleanRL, Spinning Up and RLlib: the drift of an update, often a stop rule."""

from __future__ import annotations

from functools import partial

from kullback.dictionary.metric import Choice, Metric

_update = partial(Metric, p="old", q="current", sampler="old")

CLASSIC: tuple[Metric, ...] = (
    _update(
        "stable-baselines3",
        ("train/approx_kl",),
        "k3 of the update, over the actions' joint probability",
        method="k3",
        aggregation="mean over a minibatch, mean over the minibatches of the last epoch",
        use="stop",
        defaults={"target_kl": None},
        choices=(
            Choice({"target_kl": None}, "Nothing stops at it: target_kl is None, the default."),
        ),
        faults=(
            "The list is begun anew in each epoch: it is of the last one alone.",
            "An epoch stops where one minibatch is above 1.5 target_kl.",
            'The comment calls it "reverse KL"; it is KL(old||current).',
        ),
        version="2.9.2",
        source="stable_baselines3/ppo/ppo.py",
        verified="probed",
        zoo="sb3/PPO approx_kl",
    ),
    _update(
        "cleanrl",
        ("losses/approx_kl",),
        "k3 of the update",
        method="k3",
        aggregation="mean over the last minibatch",
        use="stop",
        defaults={"target_kl": None},
        choices=(
            Choice({"target_kl": None}, "Nothing stops at it: target_kl is None, the default."),
        ),
        faults=("It is of the last minibatch alone, and so is the stop at target_kl.",),
        version="2026-04-20",
        source="cleanrl/ppo.py",
    ),
    _update(
        "cleanrl",
        ("losses/old_approx_kl",),
        "k1 of the update",
        method="k1",
        aggregation="mean over the last minibatch",
        faults=("It is of the last minibatch alone.",),
        version="2026-04-20",
        source="cleanrl/ppo.py",
    ),
    _update(
        "cleanrl",
        ("beta_clone",),
        "the KL of the update over all actions, in the auxiliary phase of PPG",
        method="exact",
        aggregation="mean over the states",
        use="loss",
        gradient="KL(old||current), token by token",
        coefficient="beta_clone",
        version="2026-04-20",
        source="cleanrl/ppg_procgen.py",
    ),
    _update(
        "spinningup",
        ("KL",),
        "k1 of the update",
        trainer="PPO",
        method="k1",
        aggregation="mean over the batch, then over processes",
        use="stop",
        defaults={"target_kl": 0.01},
        faults=(
            "It can be below 0, so that the stop at 1.5 target_kl misses: at a KL of target_kl, "
            "29 % of minibatches of 64 are negative and 39 % stop.",
        ),
        version="2020-02-07",
        source="spinup/algos/pytorch/ppo/ppo.py",
        verified="measured",
    ),
    _update(
        "spinningup",
        ("KL",),
        "the KL of the update over all actions",
        trainer="TRPO",
        method="exact",
        aggregation="mean over the states",
        use="stop",
        defaults={"delta": 0.01},
        version="2020-02-07",
        source="spinup/algos/tf1/trpo/core.py",
    ),
    _update(
        "rllib",
        ("mean_kl_loss",),
        "the KL of the update over all actions",
        method="exact",
        aggregation="mean over the states",
        use="loss",
        gradient="KL(old||current), token by token",
        coefficient="kl_coeff",
        defaults={"kl_coeff": 0.2, "kl_target": 0.01},
        version="two files of November 2026",
        source="rllib/algorithms/ppo/torch/ppo_torch_learner.py",
    ),
    Metric(
        "rllib",
        ("curr_kl_coeff",),
        "what the KL loss is multiplied by",
        formula="kl_coeff, times 1.5 above 2 kl_target, times 0.5 below half of it",
        level="",
        aggregation="none",
        negative=False,
        use="coefficient",
        version="two files of November 2026",
        source="rllib/algorithms/ppo/ppo.py",
    ),
)
