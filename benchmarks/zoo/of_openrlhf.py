"""OpenRLHF: ``compute_approx_kl`` in the actor's loss, with either gradient, and in the reward."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from entry import Entry

# The package openrlhf.models imports flash-attn, which needs a GPU to be built. Its files that are
# called here do not: an empty package in its place lets Python find them.
models = ModuleType("openrlhf.models")
models.__path__ = [
    str(Path(folder) / "models")
    for folder in importlib.util.find_spec("openrlhf").submodule_search_locations
]
sys.modules["openrlhf.models"] = models

from openrlhf.models.loss import PolicyLoss, aggregate_loss  # noqa: E402
from openrlhf.models.utils import compute_approx_kl, compute_reward  # noqa: E402

PACKAGES = ("openrlhf",)
KINDS = ("k1", "k2", "k3")


def loss(kind: str, unbiased: bool) -> Callable[..., Any]:
    """What the actor adds to its loss, over the tokens of a batch."""

    def term(current: Any, reference: Any, old: Any, mask: Any) -> Any:
        kl = compute_approx_kl(
            current, reference, log_probs_old=old, kl_estimator=kind, unbiased_gradient=unbiased
        )
        return aggregate_loss(kl, mask)

    return term


def in_reward(kind: str) -> Callable[..., Any]:
    """What is taken off the reward of each token: the reward of the sequence is 0."""

    def term(old: Any, reference: Any, mask: Any) -> Any:
        kl = compute_approx_kl(old.detach(), reference, kl_estimator=kind)
        return -compute_reward(old.new_zeros(len(old)), 1.0, kl, action_mask=mask)

    return term


def ppo_kl(current: Any, old: Any, mask: Any) -> Any:
    """What is logged as ``ppo_kl``."""
    logged = PolicyLoss()(current, old.detach(), current.new_zeros(current.shape), mask)
    return logged[2].detach()


LOSS = "openrlhf.models: utils.compute_approx_kl, loss.aggregate_loss"
REWARD = "openrlhf.models.utils: compute_approx_kl, compute_reward"
ENTRIES = (
    *(
        Entry(f"loss {kind}", loss(kind, unbiased=False), LOSS, f"kl.estimator={kind}", "loss")
        for kind in KINDS
    ),
    *(
        Entry(
            f"loss {kind}, unbiased gradient",
            loss(kind, unbiased=True),
            LOSS,
            f"kl.estimator={kind}, kl.unbiased_gradient=True",
            "loss",
        )
        for kind in KINDS
    ),
    *(
        Entry(f"reward {kind}", in_reward(kind), REWARD, f"kl.estimator={kind}", "reward")
        for kind in KINDS
    ),
    Entry("ppo_kl", ppo_kl, "openrlhf.models.loss: PolicyLoss", "", "metric"),
)
