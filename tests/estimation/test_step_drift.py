"""Drift by step against runs whose KLs are exact."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kullback.columns import pack
from kullback.estimation.step_drift import DriftByStep, drift_by_step, drift_questions
from kullback.estimation.summary import summarize
from kullback.experiments.tangent.steps import REFERENCE, walk
from kullback.question import Question
from kullback.worlds import Mixture, logged_by_step, small_steps
from kullback.worlds.tables import drifted, zipf

START = zipf(np.random.default_rng(1), contexts=32, alphabet=200)
STEP, WAY = Question("old", "current"), Question("current", "reference")
SIZES: dict[str, Any] = {"prompts": 24, "sequences_per_prompt": 4, "max_length": 40}


def run_of(straight: bool, steps: int = 16, start=START, size: float = 0.05):
    rng = np.random.default_rng(3)
    return small_steps(rng, start, steps=steps, size=size, straight=straight, **SIZES)


def logged(run, every: int = 1):
    return logged_by_step(np.random.default_rng(4), run, every)


def drift(batches) -> DriftByStep:
    found = drift_by_step(summarize(batches, by=["step"]))
    assert found
    return found


RUNS = {straight: run_of(straight) for straight in (True, False)}
FOUND = {straight: drift(logged(run)) for straight, run in RUNS.items()}


@pytest.mark.parametrize("straight", RUNS)
def test_every_step_and_the_way_after_it_are_those_of_the_world(straight):
    for world, one in zip(RUNS[straight], FOUND[straight].steps, strict=True):
        for found, question in ((one.step, STEP), (one.total, WAY)):
            exact = world.exact(question)
            assert abs(found.mean - exact) < 5 * found.standard_error
    assert [one.name for one in FOUND[straight].steps] == [str(n) for n in range(16)]


@pytest.mark.parametrize("straight", RUNS)
def test_the_sum_of_the_steps_and_the_ratio_are_those_of_the_world(straight):
    found, run = FOUND[straight], RUNS[straight]
    exact = sum(world.exact(STEP) for world in run)
    # Steps share no draw: their errors add as independent ones.
    error = math.sqrt(sum(one.step.standard_error**2 for one in found.steps))
    assert abs(found.sum_of_steps - exact) < 5 * error
    ratio = run[-1].exact(WAY) / exact
    last = found.steps[-1].total
    relative = math.hypot(error / exact, last.standard_error / last.mean)
    assert abs(found.ratio - ratio) < 5 * relative * ratio
    assert found.ratio_low < ratio < found.ratio_high
    roots = sum(math.sqrt(world.exact(STEP)) for world in run)
    assert found.straight == pytest.approx(roots**2 / exact, rel=0.05)


@pytest.mark.parametrize("straight", RUNS)
def test_what_each_step_added_is_the_difference_of_the_exact_ways(straight):
    ways = [world.exact(WAY) for world in RUNS[straight]]
    changes = [one.added for one in FOUND[straight].steps]
    assert math.isnan(changes[0].mean)
    for i, change in enumerate(changes[1:], 1):
        assert abs(change.mean - (ways[i] - ways[i - 1])) < 5 * change.standard_error


def test_the_shapes_are_told_apart():
    assert (FOUND[True].shape, FOUND[False].shape) == ("straight", "walk")
    assert FOUND[True].reason == FOUND[False].reason == ""


def test_half_the_way_straight_and_half_at_random_is_between():
    straight = run_of(True, steps=8)
    rest = small_steps(
        np.random.default_rng(9), straight[-1].log_probs["current"],
        steps=8, size=0.05, straight=False, **SIZES,
    )  # fmt: skip
    whole = [*straight, *(with_reference(world, START) for world in rest)]
    assert drift(logged(whole)).shape == "between"


def with_reference(world: Mixture, table) -> Mixture:
    return replace(world, log_probs={**world.log_probs, "reference": table})


def test_a_limit_is_passed_where_the_low_end_passes_it():
    found = FOUND[True]
    above = [one.name for one in found.steps if one.total.low > 0.05]
    assert found.first_above(0.05) == above[0]
    assert found.first_above(5.0) is None
    assert found.largest == max(one.step.high for one in found.steps) < 0.01


def test_the_step_that_jumps_is_the_one_that_added_most():
    run = list(run_of(False, steps=6, size=0.02))
    jump = drifted(np.random.default_rng(8), run[2].log_probs["old"], 0.6)
    run[2] = replace(run[2], log_probs={**run[2].log_probs, "current": jump})
    rest = small_steps(np.random.default_rng(7), jump, steps=3, size=0.02, straight=False, **SIZES)
    run[3:] = [with_reference(world, START) for world in rest]
    found = drift(logged(run))
    assert [one.name for one in found.most_added(1)] == ["2"]
    assert found.shape != "straight"


def test_steps_that_are_left_out_leave_the_shape_unknown():
    found = drift(logged(RUNS[True], every=3))
    assert (found.shape, found.reason) == ("unknown", "not every step is there")


def test_steps_that_were_counted_anew_show_that_others_lie_between():
    batches = logged(run_of(True, steps=33), every=8)
    renumbered = [
        replace(batch, labels={"step": np.full(len(batch.lengths), i)})
        for i, batch in enumerate(batches)
    ]
    found = drift(renumbered)
    assert found.shape == "unknown"
    assert "others lie between" in found.reason


def test_a_reference_that_is_not_the_start_leaves_the_shape_unknown():
    elsewhere = drifted(np.random.default_rng(6), START, 0.4)
    found = drift(logged([with_reference(world, elsewhere) for world in RUNS[True]]))
    assert found.reason == "the first step that is there did not begin at the reference"


def test_one_summary_for_each_step_says_the_same_and_where():
    batches = logged(RUNS[True])
    found = drift_by_step([summarize([batch], by=["position"]) for batch in batches])
    assert found
    assert found.ratio == pytest.approx(FOUND[True].ratio, rel=1e-12)
    assert found.shape == "straight"
    for one, other in zip(found.steps[1:], FOUND[True].steps[1:], strict=True):
        assert one.added == pytest.approx(other.added, abs=1e-12)
    grown = RUNS[True][-1].exact(WAY) - RUNS[True][0].exact(WAY)
    assert ", ".join(name for name, _ in found.by_position) == "0, 1, 2–3, 4–7, 8–15, 16–31, 32–63"
    for _, change in found.by_position:  # contexts come at random: each position is alike
        assert abs(change.mean - grown) < 5 * change.standard_error


def test_many_steps_share_cells_and_are_counted():
    small = {**SIZES, "prompts": 8, "max_length": 20}
    run = small_steps(np.random.default_rng(3), START, steps=100, size=0.03, **small)
    found = drift(logged(run))
    assert len(found.steps) == 50
    assert found.steps[3].name == "6–7"
    assert found.steps[3].steps == 2
    exact = sum(world.exact(STEP) for world in run)
    assert found.sum_of_steps == pytest.approx(exact, rel=0.05)
    assert found.shape == "straight"


def test_without_both_questions_or_two_steps_there_is_no_drift():
    batches = logged(RUNS[True])
    assert drift_by_step(summarize(batches[:1], by=["step"])) is None
    assert drift_by_step(summarize(batches)) is None
    for role in ("current", "reference"):
        fewer = [without(batch, role) for batch in batches]
        assert drift_by_step(summarize(fewer, by=["step"])) is None
    one, other = (summarize([batch]) for batch in (batches[0], without(batches[1], "current")))
    assert drift_by_step([one, other]) is None
    assert drift_by_step([]) is None


def without(batch, role: str):
    return replace(batch, log_probs={r: v for r, v in batch.log_probs.items() if r != role})


def test_the_engine_stands_in_where_old_is_not_logged():
    batches = [
        replace(batch, log_probs={
            {"old": "rollout"}.get(role, role): values for role, values in batch.log_probs.items()
        })
        for batch in logged(RUNS[True])
    ]  # fmt: skip
    summary = summarize(batches, by=["step"])
    assert drift_questions(summary) == (
        Question("rollout", "current"),
        Question("current", "reference", "rollout"),
    )
    found = drift_by_step(summary)
    assert found
    assert found.ratio == FOUND[True].ratio


def test_what_overflows_has_no_number_and_no_warning():
    batches = logged(RUNS[True])
    huge = {role: np.where(values < -1, -1e308, values) for role, values in
            batches[3].log_probs.items() if role != "old"}  # fmt: skip
    batches[3] = replace(batches[3], log_probs={**batches[3].log_probs, **huge})
    found = drift(batches)
    assert math.isnan(found.largest)
    assert found.shape == "unknown"


def test_the_policies_of_the_experiment_on_small_steps_are_told_as_there():
    """Steps of 0.01 nats by natural gradients, until the run ends at one token, 3.83 nats away."""
    run = walk("natural")
    policies = list(run.policies[:25])
    rng = np.random.default_rng(0)
    batches = []
    for step, (old, current) in enumerate(pairwise(policies)):
        tokens = rng.choice(len(old), size=1000, p=old)
        sides = {"old": old, "current": current, "reference": REFERENCE}
        log_probs = {role: np.log(p)[tokens] for role, p in sides.items()}
        batch = pack(log_probs, lengths=1)
        batches.append(replace(batch, labels={"step": np.full(len(tokens), step)}))
    found = drift(batches)
    assert found.shape == "straight"
    assert found.steps[-1].total.low < run.drift()[24] < found.steps[-1].total.high
    exact = sum(run.taken()[:24])
    assert found.sum_of_steps == pytest.approx(exact, rel=0.05)
    assert found.largest < run.drift()[24] / 100
