from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.controller import fed
from kullback.experiments.controller.loop import SMOOTH, Loop, Run


def small(kl, log_beta) -> Run:
    shape = (fed.SKIP + 2, len(fed.LOOPS), 2)
    return Run(np.full(shape, kl), np.full(shape, log_beta))


def test_what_is_said_of_loops_is_said_after_they_have_settled():
    clipped, free = small(1.1, 0.0), small(0.7, 0.0)
    clipped.kl[: fed.SKIP] = 50.0
    one = fed.Fed(SMOOTH, clipped, free, small(1.0, 0.0))
    assert one.sds() == pytest.approx(0.1)
    assert one.means() == pytest.approx(1.1)
    assert one.sds(clip=False) == pytest.approx(0.3)
    assert one.means(clip=False) == pytest.approx(0.7)
    assert {key: len(trace) for key, trace in one.traces(3).items()} == {
        (power, feed): 3 for feed in fed.FEEDS for power in fed.POWERS
    }


def test_a_loop_is_called_by_its_estimate_and_its_batch():
    assert fed.name(Loop("k3", 4096, 0.1)) == "k3 of 4,096"
