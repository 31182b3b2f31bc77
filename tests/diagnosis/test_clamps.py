from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns
from kullback.diagnosis.clamps import CODE, SPOKEN, USED_BY, diagnose_clamps, rows
from kullback.estimation.clamp_state import CLAMPS
from kullback.estimation.summary import summarize
from kullback.losses.clamp import clamp_bias
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, Mixture
from kullback.worlds.faults import rounded_to_bf16

assert CODE == "clamp-active"
WORLD = cast(Mixture, CLEAN_WORLDS["smooth"](16))
CLEAN = WORLD.sample(np.random.default_rng(0))


def clamped(low: float, high: float, dtype: type = np.float64) -> Columns:
    p = CLEAN.log_probs["rollout"].astype(dtype)
    log_r = np.clip(CLEAN.log_probs["reference"] - CLEAN.log_probs["rollout"], low, high)
    return replace(CLEAN, log_probs={"rollout": p, "reference": (p + log_r).astype(dtype)})


def found(columns: Columns):
    return diagnose_clamps(summarize([columns])).findings


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-0.05, 0.05),
        (-0.3333, 0.3333),
        (-0.25, 0.25),
        (np.log(0.8), np.log(1.2)),
        (-np.inf, 0.2),
        (-0.3, np.inf),
        (-np.inf, np.log(1.3)),
    ],
)
def test_a_clamp_before_logging_is_told_with_its_limits(low, high, dtype):
    (finding,) = found(clamped(low, high, dtype))
    assert (finding.code, finding.severity) == (CODE, "warning")
    limits = [end for end in (low, high) if np.isfinite(end)]
    assert finding.numbers["limits"] == pytest.approx(limits, rel=1e-4)
    log_r = CLEAN.log_probs["reference"] - CLEAN.log_probs["rollout"]
    cut = ((log_r <= low) | (log_r >= high)).sum()
    assert finding.numbers["tokens"] == pytest.approx(cut, abs=2)  # some lie as near as rounding


@pytest.mark.parametrize("name", CLEAN_WORLDS)
@pytest.mark.parametrize("prompts", [16, 64])
def test_no_clean_world_is_clamped(name, prompts):
    columns = CLEAN_WORLDS[name](prompts).sample(np.random.default_rng(1))
    for change in (
        lambda x: x,
        rounded_to_bf16,
        lambda x: np.round(x, 2),
        lambda x: np.round(x, 4),
    ):
        coarse = {role: change(values) for role, values in columns.log_probs.items()}
        told = found(replace(columns, log_probs=coarse))
        assert all(finding.severity == "note" for finding in told)


def test_a_trainers_clamp_that_would_move_k3_beyond_its_error_is_noted():
    columns = CLEAN_WORLDS["deep_holes_in_policy"](64).sample(np.random.default_rng(5))
    log_probs = dict(columns.log_probs)
    places = np.flatnonzero(log_probs["rollout"] < -4)[::100]
    log_probs["reference"] = np.array(log_probs["reference"])
    log_probs["reference"][places] = log_probs["rollout"][places] + np.linspace(
        2.9, 3.2, len(places)
    )
    (finding,) = found(replace(columns, log_probs=log_probs))
    assert (finding.code, finding.severity, finding.questions) == (CODE, "note", ())
    assert finding.numbers["clamp"] in CLAMPS
    assert finding.numbers["clamped_mean"] < finding.numbers["mean"]


def test_a_clamp_that_changes_nothing_is_not_noted():
    assert not found(CLEAN)


def test_the_table_is_empty_where_no_clamp_does_anything():
    asked = Question("rollout", "reference")
    near = summarize([clamped(-0.05, 0.05)])
    far = summarize([CLEAN_WORLDS["strong_drift"](16).sample(np.random.default_rng(0))])
    assert rows(near, asked) == []
    assert [one["clamp"] for one in rows(far, asked)] == list(CLAMPS)


def test_every_clamp_is_spoken_of():
    assert set(SPOKEN) == set(USED_BY) == set(CLAMPS)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("k3_within_20_10", {"log_ratio": 20.0, "value": 10.0}),
        ("k3_10", {"value": 10.0}),
        ("k1_10", {"value": 10.0}),
    ],
)
def test_the_table_says_what_the_clamp_of_a_loss_does(name, bounds):
    columns = CLEAN_WORLDS["holes_in_policy"](16).sample(np.random.default_rng(0))
    p, q = (columns.log_probs[role][None] for role in ("rollout", "reference"))
    found = clamp_bias(log_p=p, log_q=q, form=CLAMPS[name].form, **bounds)
    told = rows(summarize([columns]), Question("rollout", "reference"))
    one = next(row for row in told if row["clamp"] == name)
    assert one["tokens"] == found.clamped
    assert (one["mean"], one["clamped_mean"]) == pytest.approx((found.mean, found.clamped_mean))
