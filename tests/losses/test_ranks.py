"""Two processes that share a step, as a trainer has them: their shares are the step's loss."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import kullback as kb

from . import one_rank
from .one_rank import MASK, P, Q, S


def test_shares_of_two_ranks_are_the_loss_and_gradient_of_the_step(tmp_path):
    torch = pytest.importorskip("torch")
    command = [sys.executable, one_rank.__file__]
    ranks = [subprocess.Popen([*command, str(rank), str(tmp_path)]) for rank in range(2)]
    assert [one.wait(timeout=120) for one in ranks] == [0, 0]
    found = [np.load(tmp_path / f"{rank}.npz") for rank in range(2)]
    log_p = torch.tensor(P, requires_grad=True)
    others: dict[str, Any] = {
        "log_q": torch.tensor(Q),
        "log_sampler": torch.tensor(S),
        "mask": torch.tensor(MASK),
    }
    whole = kb.loss(log_p=log_p, **others, gradient="sequence")
    assert sum(float(one["share"]) for one in found) == pytest.approx(whole.item(), rel=1e-12)
    slope = np.concatenate([one["slope"] for one in found])
    np.testing.assert_allclose(
        slope, torch.autograd.grad(whole, log_p)[0].numpy(), rtol=1e-11, atol=1e-14
    )
