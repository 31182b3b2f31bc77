"""One of two processes that share a step: python one_rank.py RANK FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import kullback as kb

RNG = np.random.default_rng(11)
P, Q, S = (-RNG.exponential(1.0, (5, 4)) for _ in range(3))
MASK = np.arange(4) < np.array([4, 1, 2, 3, 1])[:, None]
ROWS = [slice(0, 1), slice(1, 5)]


def run(rank: int, folder: Path) -> None:
    """Add the sums over the ranks, then keep this one's share and its gradient."""
    import torch
    from torch import distributed

    where = f"file://{folder}/meeting"
    distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=2)
    log_p, log_q, log_s, mask = (torch.tensor(one[ROWS[rank]]) for one in (P, Q, S, MASK))
    log_p.requires_grad_()
    logs: dict[str, Any] = {"log_p": log_p, "log_q": log_q, "log_sampler": log_s, "mask": mask}
    sums = torch.stack([one.double() for one in kb.loss_totals(**logs, prefixes="p")])
    distributed.all_reduce(sums)
    share = kb.loss(**logs, gradient="sequence", pooled=kb.Totals(*sums))
    share.backward()
    assert log_p.grad is not None
    np.savez(folder / f"{rank}.npz", share=share.item(), slope=log_p.grad.numpy())
    distributed.destroy_process_group()


if __name__ == "__main__":
    run(int(sys.argv[1]), Path(sys.argv[2]))
