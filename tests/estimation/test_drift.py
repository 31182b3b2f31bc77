from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

import kullback as kb
from kullback.estimation.drift import Drift, split_drift
from kullback.estimation.estimate import from_state
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, Mixture
from kullback.worlds.faults import with_policy
from kullback.worlds.tables import drifted

LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](64))
OLD, CURRENT = Question("rollout", "old"), Question("rollout", "current")


def versioned(world: Mixture, seed: int, behind: int):
    columns = world.sample(np.random.default_rng(seed))
    step = np.full(len(columns.lengths), 10)
    versions = np.full(len(columns), 10 - behind)
    return replace(columns, versions=versions, labels={"step": step}, source=str(seed))


def lagging() -> Mixture:
    """The engine runs older weights; what scores stays as it is."""
    older = drifted(np.random.default_rng(5), LOOP.log_probs["rollout"], 0.15)
    return with_policy(LOOP, "rollout", older)


def split(summary) -> Drift:
    found = split_drift(summary)
    assert found
    return found


def asked(*batches) -> Drift:
    return split(summarize(batches, questions=[OLD, CURRENT], by=["staleness"]))


def test_engine_staleness_and_update_are_those_of_the_world_and_add_up():
    stale = lagging()
    found = asked(versioned(LOOP, 1, 0), versioned(stale, 2, 3))
    engine, staleness, update = found.parts
    assert [part.name for part in found.parts] == ["engine", "staleness", "update"]
    assert sum(part.change.mean for part in found.parts) == pytest.approx(
        found.total.mean, abs=1e-12
    )
    # Half of the sequences of either kind; lengths are of one law.
    fresh, old = LOOP.exact(OLD), (LOOP.exact(OLD) + stale.exact(OLD)) / 2
    current = (LOOP.exact(CURRENT) + stale.exact(CURRENT)) / 2
    for part, exact in ((engine, fresh), (staleness, old - fresh), (update, current - old)):
        assert abs(part.change.mean - exact) < 5 * part.change.standard_error
    assert staleness.change.low > 0.001  # it is told
    assert found.unsplit == ""


def test_without_versions_engine_and_staleness_are_one_part():
    found = split(summarize([LOOP.sample(np.random.default_rng(0))]))
    assert [part.name for part in found.parts] == ["engine and staleness", "update"]
    assert found.unsplit == "the versions of the weights are not logged"


@pytest.mark.parametrize(
    ("behind", "names", "why"),
    [
        ((0,), ["engine", "update"], ""),
        ((2,), ["engine and staleness", "update"], "no token was sampled by the newest weights"),
    ],
)
def test_what_versions_there_are_decides_what_can_be_told(behind, names, why):
    found = asked(*(versioned(LOOP, seed, back) for seed, back in enumerate(behind)))
    assert [part.name for part in found.parts] == names
    assert found.unsplit == why


def test_by_cell_the_parts_add_up_to_the_kl_there():
    batch = versioned(LOOP, 1, 0)
    summary = summarize([batch], questions=[OLD, CURRENT], by=["position", "staleness"])
    found = split(summary)
    rows = {row.name: row for row in summary.by[CURRENT]["position"].rows()}
    assert [cell.name for cell in found.by["position"]] == list(rows)
    for cell in found.by["position"]:
        whole, (engine, update) = rows[cell.name], cell.parts
        assert cell.tokens == whole.tokens
        both = engine.change.mean + update.change.mean
        assert both == pytest.approx(whole.estimates["k1"].mean, abs=1e-12)


def test_three_policies_are_needed_and_the_same_tokens_of_each():
    pair = CLEAN_WORLDS["smooth"](4).sample(np.random.default_rng(0))
    assert split_drift(summarize([pair])) is None
    columns = LOOP.sample(np.random.default_rng(0))
    gap = np.where(np.arange(len(columns)) == 7, np.nan, columns.log_probs["old"])
    holed = replace(columns, log_probs={**columns.log_probs, "old": gap})
    assert split_drift(summarize([holed])) is None


def test_the_error_of_the_update_is_that_of_the_paired_difference():
    """k1 of the update is log old − log current, token by token: an ordinary clustered mean."""
    columns = LOOP.sample(np.random.default_rng(3))
    update = split(summarize([columns])).parts[-1].change
    legs = {"rollout": columns.log_probs["old"], "current": columns.log_probs["current"]}
    plain = kb.summarize([replace(columns, log_probs=legs)])
    (state,) = plain.questions.values()
    direct = from_state(state, "k1")
    assert update.mean == pytest.approx(direct.mean, rel=1e-9)
    assert update.standard_error == pytest.approx(direct.standard_error, rel=1e-9)
