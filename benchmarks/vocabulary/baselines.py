"""What people write today for divergences over a whole vocabulary, as competent users of torch do.

benchmarks/vocabulary measures against these. They were written before what is measured, and are
not changed together with it. Half precision goes through float32, as it has to.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

# pip install --no-deps --target build/liger liger-kernel==0.8.5
LIGER = Path(__file__).parents[2] / "build" / "liger"

SIX = ("kl_pq", "kl_qp", "entropy_p", "entropy_q", "chi2_qp", "js")


def six(logits_p: torch.Tensor, logits_q: torch.Tensor) -> dict[str, torch.Tensor]:
    """KL both ways, both entropies, chi2(q||p) and JS of each row, from two log-softmaxes."""
    log_p = functional.log_softmax(logits_p.float(), dim=-1)
    log_q = functional.log_softmax(logits_q.float(), dim=-1)
    p, q = log_p.exp(), log_q.exp()
    log_p_over_q = log_p - log_q
    log_m = ((p + q) / 2).log()
    return {
        "kl_pq": (p * log_p_over_q).sum(-1),
        "kl_qp": -(q * log_p_over_q).sum(-1),
        "entropy_p": -(p * log_p).sum(-1),
        "entropy_q": -(q * log_q).sum(-1),
        "chi2_qp": ((p - q) ** 2 / p).sum(-1),
        "js": ((p * (log_p - log_m)).sum(-1) + (q * (log_q - log_m)).sum(-1)) / 2,
    }


def kl_only(logits_p: torch.Tensor, logits_q: torch.Tensor) -> torch.Tensor:
    """KL(p||q) of each row, and nothing else."""
    log_p = functional.log_softmax(logits_p.float(), dim=-1)
    log_q = functional.log_softmax(logits_q.float(), dim=-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def torch_kl_div(logits_p: torch.Tensor, logits_q: torch.Tensor) -> torch.Tensor:
    """KL(p||q) of each row by torch's own function, whose first argument is log q."""
    log_p = functional.log_softmax(logits_p.float(), dim=-1)
    log_q = functional.log_softmax(logits_q.float(), dim=-1)
    return functional.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)


def products(
    hidden_p: torch.Tensor, head_p: torch.Tensor, hidden_q: torch.Tensor, head_q: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The two bare matrix products: what any exact method has to compute at least."""
    return hidden_p @ head_p.T, hidden_q @ head_q.T


def six_from_hidden(
    hidden_p: torch.Tensor, head_p: torch.Tensor, hidden_q: torch.Tensor, head_q: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The six from hidden states: all logits of both sides first."""
    return six(*products(hidden_p, head_p, hidden_q, head_q))


def kl_only_from_hidden(
    hidden_p: torch.Tensor, head_p: torch.Tensor, hidden_q: torch.Tensor, head_q: torch.Tensor
) -> torch.Tensor:
    """KL(p||q) from hidden states."""
    return kl_only(*products(hidden_p, head_p, hidden_q, head_q))


def loss_by_autograd(
    hidden_student: torch.Tensor,
    head_student: torch.Tensor,
    hidden_teacher: torch.Tensor,
    head_teacher: torch.Tensor,
) -> torch.Tensor:
    """The mean KL(student||teacher) over tokens, differentiated; gradients are left in .grad."""
    with torch.no_grad():
        log_q = functional.log_softmax((hidden_teacher @ head_teacher.T).float(), dim=-1)
    log_p = functional.log_softmax((hidden_student @ head_student.T).float(), dim=-1)
    loss = functional.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1).mean()
    loss.backward()
    return loss.detach()


def liger_loss(chunk: int = 128, *, compiled: bool = False) -> Any:
    """The same loss by liger's chunked JSD at beta = 1, or None where liger cannot be imported."""
    if LIGER.is_dir() and str(LIGER) not in sys.path:
        sys.path.append(str(LIGER))
    try:
        from liger_kernel.chunked_loss import LigerFusedLinearJSDLoss
    except ImportError:
        return None
    module = LigerFusedLinearJSDLoss(
        weight_hard_loss=0.0, weight_soft_loss=1.0, beta=1.0, compiled=compiled, chunk_size=chunk
    )

    def loss(
        hidden_student: torch.Tensor,
        head_student: torch.Tensor,
        hidden_teacher: torch.Tensor,
        head_teacher: torch.Tensor,
    ) -> torch.Tensor:
        labels = torch.zeros(len(hidden_student), dtype=torch.long, device=hidden_student.device)
        out = module(hidden_student, head_student, hidden_teacher, head_teacher, labels)
        out.backward()
        return out.detach()

    return loss


def compiled(function: Any) -> Any:
    """The same function by torch.compile."""
    return torch.compile(function, dynamic=False)
