from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import SENTINEL, Columns, pack
from kullback.estimation.clamp_state import (
    CLAMPS,
    FAR_ABOVE,
    FAR_BELOW,
    NEAR,
    Clamp,
    ClampState,
    End,
)
from kullback.estimation.ratios import log_ratios
from kullback.losses.clamp import clamp_bias
from kullback.question import Question

ASKED = Question("old", "new")
LOG_R = np.array([0.0, 0.5, -0.5, 1.5, -0.75, 1.7, 2.5, 2.7, 8.0, -9.5, -10.5, -11.5, 30.0])


def batch(log_r: np.ndarray = LOG_R) -> Columns:
    old = np.full(log_r.shape, -31.0)
    return pack({"old": old, "new": old + log_r}, lengths=1)


def state_of(columns: Columns) -> ClampState:
    return ClampState.of(columns, log_ratios(columns, [ASKED])[ASKED])


STATE = state_of(batch())


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("k3_within_20_10", {"log_ratio": 20.0, "value": 10.0}),
        ("k3_10", {"value": 10.0}),
        ("k1_10", {"value": 10.0}),
    ],
)
def test_symmetric_clamps_are_those_of_the_loss(name, bounds) -> None:
    old, new = (values[None] for values in batch().log_probs.values())
    found = clamp_bias(log_p=old, log_q=new, form=CLAMPS[name].form, **bounds)
    assert STATE.changed[name] == found.clamped
    assert STATE.added[name] / len(LOG_R) == pytest.approx(found.bias, rel=1e-9)


@pytest.mark.parametrize("name", CLAMPS)
def test_no_clamp_changes_what_is_too_near_to_be_looked_at(name) -> None:
    nearest = np.linspace(-NEAR, NEAR, 999)
    near = nearest if CLAMPS[name].drops else np.linspace(-FAR_BELOW, FAR_ABOVE, 9999)
    assert CLAMPS[name].changed(near) == (0, 0.0)


def test_a_clamp_from_one_side_leaves_the_other() -> None:
    clamp = Clamp("k3", low=-10.0, value=10.0)
    assert CLAMPS["k3_above_minus_10_10"] == clamp
    count, added = clamp.changed(np.array([-9.5, -10.5, -11.5]))
    k3 = [np.exp(x) - 1 - x for x in (-10.0, -10.5, -11.5)]
    assert (count, added) == (2, pytest.approx(2 * k3[0] - k3[1] - k3[2]))


def test_a_band_drops_what_lies_outside() -> None:
    outside = LOG_R[(np.log(0.5) > LOG_R) | (np.log(5) < LOG_R)]
    assert STATE.changed["ratio_0.5_5"] == len(outside)
    lost = (np.exp(outside) - 1 - outside).sum()
    assert STATE.added["ratio_0.5_5"] == pytest.approx(-lost, rel=1e-12)


def test_what_is_masked_missing_or_infinite_does_not_count() -> None:
    old = np.array([-1.0, np.nan, SENTINEL, -1.0, -1.0])
    columns = pack({"old": old, "new": [-1.5, -1.0, -1.0, -np.inf, -3.0]}, lengths=1)
    state = state_of(replace(columns, mask=np.array([True] * 4 + [False])))
    assert (state.tokens, state.low, state.high) == (1, End(-0.5, 1), End(0.0, 0))
    assert not any(state.changed.values())


def test_the_ends_are_kept_with_what_stands_there() -> None:
    log_r = np.array([0.5, -0.25, 0.5 + 1e-7, 0.1, -0.5, 0.5 - 1e-3, -0.25])
    whole = state_of(batch(log_r))
    assert (whole.low, whole.high.ties) == (End(-0.5, 1), 2)
    parts = [state_of(batch(log_r[a:b])) for a, b in ((0, 1), (1, 4), (4, 7))]
    assert (parts[0] + parts[1] + parts[2]).high == whole.high
    assert parts[2].low + parts[0].low == parts[0].low + parts[2].low == End(-0.5, 1)
