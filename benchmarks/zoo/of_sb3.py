"""Stable-Baselines3: what ``PPO.train`` logs as ``train/approx_kl``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from entry import Entry
from gymnasium import spaces
from stable_baselines3 import PPO

PACKAGES = ("stable-baselines3",)


def approx_kl(current: Any, old: Any, mask: Any) -> Any:
    """One epoch of ``PPO.train`` over one minibatch, each token an action."""
    valid = mask.bool()
    now, before = current.detach()[valid], old.detach()[valid]
    weight = torch.zeros_like(now, requires_grad=True)
    batch = SimpleNamespace(
        actions=torch.zeros_like(now),
        observations=None,
        advantages=torch.zeros_like(now),
        old_log_prob=before,
        old_values=torch.zeros_like(now),
        returns=torch.zeros_like(now),
    )
    logged = {}
    stand_in = SimpleNamespace(
        policy=SimpleNamespace(
            set_training_mode=lambda mode: None,
            optimizer=torch.optim.SGD([weight], lr=0.0),
            evaluate_actions=lambda observations, actions: (0 * weight, now, None),
            parameters=lambda: [weight],
        ),
        rollout_buffer=SimpleNamespace(
            get=lambda size: [batch],
            values=SimpleNamespace(flatten=lambda: before.numpy()),
            returns=SimpleNamespace(flatten=lambda: before.numpy()),
        ),
        logger=SimpleNamespace(record=lambda key, value, **more: logged.update({key: value})),
        action_space=spaces.Discrete(2),
        _update_learning_rate=lambda optimizer: None,
        clip_range=lambda progress: 0.2,
        clip_range_vf=None,
        _current_progress_remaining=1.0,
        n_epochs=1,
        batch_size=len(now),
        normalize_advantage=False,
        ent_coef=0.0,
        vf_coef=0.0,
        max_grad_norm=0.5,
        target_kl=None,
        verbose=0,
        _n_updates=0,
    )
    PPO.train(stand_in)
    return torch.as_tensor(logged["train/approx_kl"], dtype=now.dtype)


ENTRIES = (
    Entry(
        "PPO approx_kl", approx_kl, "stable_baselines3.ppo.ppo: PPO.train", "", "metric", "method"
    ),
)
