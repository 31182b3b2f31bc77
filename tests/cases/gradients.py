"""The gradients of KL terms, exact means over all actions: through kb.loss and kb.penalty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kullback as kb

from .entries import Input, Table, log


def slope(x: Input, loss: Callable[[Any, Any], Any], actions: Any = None) -> NDArray[np.float64]:
    """Of the mean over what the policy draws (or over these actions) of loss(log_p, log_q)."""
    torch = pytest.importorskip("torch")
    logits = torch.tensor(x["policy_logits"], dtype=torch.float64, requires_grad=True)
    log_p, log_q = logits.log_softmax(-1), torch.tensor(log(x["ref_probs"]))
    weight = log_p.exp().detach()
    if actions is not None:
        weight = torch.bincount(torch.tensor(actions), minlength=len(logits)).double() / len(
            actions
        )
    found = torch.stack([loss(log_p[a, None, None], log_q[a, None, None]) for a in range(4)])
    return torch.autograd.grad((weight * found).sum(), logits)[0].numpy()


def of_form(x: Input, form: str, **options: Any) -> NDArray[np.float64]:
    return slope(x, lambda p, q: kb.loss(log_p=p, log_q=q, form=form, biased=True), **options)


def of_reward(x: Input) -> NDArray[np.float64]:
    return slope(x, lambda p, q: (kb.penalty(log_p=p, log_q=q) * p).sum())


def of_kl(x: Input, direction: str) -> NDArray[np.float64]:
    """The gradient itself, of whole distributions."""
    torch = pytest.importorskip("torch")
    logits = torch.tensor(x["policy_logits"], dtype=torch.float64, requires_grad=True)
    log_q = torch.tensor(log(x["ref_probs"]))
    sides = {"log_probs_p": logits.log_softmax(-1), "log_probs_q": log_q}
    if direction == "KL(q||p)":
        sides = {"log_probs_p": log_q, "log_probs_q": logits.log_softmax(-1)}
    return torch.autograd.grad(kb.exact(**sides), logits)[0].numpy()


def cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def biased(form: str) -> str:
    return " ".join(kb.loss_claim(form=form).wrong_gradient)


FORMS = {
    "A": lambda x: of_form(x, "k2"),
    "B": of_reward,
    "C": lambda x: of_form(x, "ratio_k3"),
    "D": lambda x: of_form(x, "k3"),  # on policy a detached ratio is 1
}

GRADIENTS: Table = {
    "32-k1-as-loss-zero-gradient": {
        "verdict": lambda _: biased("k1"),
        "expected_gradient": lambda x: of_form(x, "k1"),
        "true_gradient_of_KL": lambda x: of_kl(x, "KL(p||q)"),
        "gradient_of_this_batch": lambda x: of_form(x, "k1", actions=x["one_batch_actions"]),
    },
    "33-k3-as-loss-forward-gradient": {
        "verdict": lambda _: biased("k3"),
        "expected_gradient": lambda x: of_form(x, "k3"),
        "gradient_of_forward_kl_ref_pi": lambda x: of_kl(x, "KL(q||p)"),
        "true_gradient_of_KL_pi_ref": lambda x: of_kl(x, "KL(p||q)"),
        "cosine_to_true": lambda x: cosine(of_form(x, "k3"), of_kl(x, "KL(p||q)")),
    },
    "34-correct-kl-gradients": {
        **FORMS,
        "equal_to_true": lambda x: {
            name: bool(np.allclose(of(x), of_kl(x, "KL(p||q)"), rtol=1e-9))
            for name, of in FORMS.items()
        },
    },
    "64-kl-in-reward-and-in-loss": {
        "gradient_reward_only": lambda x: x["kl_in_reward_coef"] * of_reward(x),
        "gradient_loss_only": lambda x: x["kl_in_loss_coef"] * of_form(x, x["loss_form"]),
        "gradient_both": lambda x: (
            x["kl_in_reward_coef"] * of_reward(x) + x["kl_in_loss_coef"] * of_form(x, "k2")
        ),
        "effective_coefficient_both": lambda x: float(
            np.mean(
                (x["kl_in_reward_coef"] * of_reward(x) + x["kl_in_loss_coef"] * of_form(x, "k2"))
                / of_kl(x, "KL(p||q)")
            )
        ),
    },
}
