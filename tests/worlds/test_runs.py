from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kullback.question import Question
from kullback.worlds import logged_by_step, small_steps
from kullback.worlds.tables import zipf

START = zipf(np.random.default_rng(0), contexts=8, alphabet=50)
STEP, WAY = Question("old", "current"), Question("current", "reference")


def run_of(straight: bool, steps: int = 12, size: float = 0.01):
    rng = np.random.default_rng(1)
    return small_steps(rng, START, steps=steps, size=size, straight=straight, prompts=4)


def test_each_step_begins_where_the_last_ended_and_the_reference_stays():
    run = run_of(straight=False)
    assert run[0].log_probs["old"] is START
    for before, after in pairwise(run):
        assert after.log_probs["old"] is before.log_probs["current"]
        assert after.log_probs["reference"] is START
        assert after.sampler == "old"


@pytest.mark.parametrize(("straight", "ratio"), [(True, 12.0), (False, 1.0)])
def test_one_direction_leads_away_as_the_square_of_the_steps_and_many_as_their_number(
    straight, ratio
):
    run = run_of(straight)
    summed = sum(world.exact(STEP) for world in run)
    # Steps are small: the exact KLs are quadratic to a few per cent, a walk's crosses average out.
    assert run[-1].exact(WAY) / summed == pytest.approx(ratio, rel=0.2)


def test_logged_steps_carry_their_number_and_some_can_be_left_out():
    batches = logged_by_step(np.random.default_rng(0), run_of(straight=True), every=5)
    assert [set(batch.labels["step"].tolist()) for batch in batches] == [{0}, {5}, {10}]
    assert [batch.source for batch in batches] == ["step 0", "step 5", "step 10"]
