from __future__ import annotations

import pickle
from math import inf, isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kullback.control.stopping import CHECKS, EarlyStop, replay_stops

READINGS = [[0.002, 0.006, 0.011], [0.013, 0.024, 0.012], [0.02, 0.031, 0.01]]
EPOCHS = st.lists(
    st.lists(st.floats(-1, 1) | st.just(inf), min_size=1, max_size=5), min_size=1, max_size=5
)


def by_hand(check: str, epochs: list[list[float]], limit: float) -> tuple[bool, int, list[float]]:
    """Whether a rule stops, the updates until then and what it saw: loops as trainers have them."""
    updates, seen = 0, []
    for epoch in epochs:
        for kl in epoch:
            seen.append(kl)
            if check == "minibatch" and kl > limit:
                return True, updates, seen
            updates += 1
        if check == "epoch_last" and epoch[-1] > limit:
            return True, updates, seen
        if check == "epoch_mean" and sum(epoch) / len(epoch) > limit:
            return True, updates, seen
    return False, updates, seen


@given(EPOCHS, st.floats(0.01, 1), st.floats(0.5, 2))
def test_each_rule_does_what_a_loop_does(epochs: list, target: float, factor: float):
    for check, state in replay_stops(epochs, target=target, factor=factor).items():
        stopped, updates, seen = by_hand(check, epochs, factor * target)
        assert (state.check, state.stopped, state.updates) == (check, stopped, updates)
        assert (state.readings, state.last, state.largest) == (len(seen), seen[-1], max(seen))
        assert state.mean == pytest.approx(sum(seen) / len(seen), abs=1e-12)


@given(EPOCHS, st.floats(0.01, 1), st.floats(1, 3))
def test_a_larger_target_stops_no_earlier(epochs: list, target: float, more: float):
    tight, loose = (replay_stops(epochs, target=one) for one in (target, more * target))
    assert all(tight[check].updates <= loose[check].updates for check in CHECKS)


@given(EPOCHS, st.floats(0.01, 1))
def test_a_look_before_each_step_stops_no_later_than_one_per_epoch(epochs: list, target: float):
    found = replay_stops(epochs, target=target)
    for check in ("epoch_last", "epoch_mean"):
        assert found["minibatch"].updates <= found[check].updates
        if found[check].stopped:
            assert found["minibatch"].stopped


@given(EPOCHS, st.floats(0.01, 1))
def test_of_one_minibatch_per_epoch_both_checks_after_it_are_one(epochs: list, target: float):
    found = replay_stops([epoch[:1] for epoch in epochs], target=target)
    before, last, mean = (found[check] for check in CHECKS)
    assert (last.stopped, last.updates) == (mean.stopped, mean.updates)
    assert last.updates - before.updates == before.stopped  # it steps once more


def test_what_is_logged_is_of_the_last_epoch():
    before, last, mean = replay_stops(READINGS, target=0.015).values()
    assert before.logged == pytest.approx((0.013 + 0.024) / 2)
    assert last.logged == 0.01
    assert mean.logged == pytest.approx((0.02 + 0.031 + 0.01) / 3)
    assert isnan(EarlyStop(target=1.0).logged)


def test_arrays_and_epochs_of_different_lengths_are_read():
    assert replay_stops(np.array(READINGS), target=0.015) == replay_stops(READINGS, target=0.015)
    assert replay_stops(iter([[0.1], [0.1, 0.2]]), target=1.0)["minibatch"].updates == 3


def test_an_update_leaves_the_state_as_it_was_and_it_can_be_kept():
    start = EarlyStop(target=1.0)
    state = start.update(0.5)
    state.update(3.0)
    assert (start.updates, start.readings, start.epoch, start.between) == (0, 0, (), True)
    assert pickle.loads(pickle.dumps(state)) == state
    assert (state.updates, state.readings, state.epoch) == (1, 1, (0.5,))
    assert state.end_epoch().update(0.7).epoch == (0.7,)
    assert isnan(start.mean)


def test_a_limit_is_passed_only_above_it():
    stop = EarlyStop(target=0.5, factor=2.0)
    assert not stop.update(1.0).stopped
    assert stop.update(inf).stopped
    assert not stop.update(-5.0).stopped


@pytest.mark.parametrize("check", CHECKS)
def test_one_that_has_stopped_takes_no_more(check: str):
    stop = EarlyStop(target=1.0, check=check).update(9.0)  # type: ignore[arg-type]
    stop = stop if stop.stopped else stop.end_epoch()
    assert stop.stopped
    for go_on in (lambda: stop.update(0.0), stop.end_epoch):
        with pytest.raises(ValueError, match=f"it has stopped after {stop.updates} updates"):
            go_on()


@pytest.mark.parametrize("value", [0, -1, inf, nan])
@pytest.mark.parametrize("name", ["target", "factor"])
def test_a_target_or_factor_that_is_none_is_refused(name: str, value: float):
    with pytest.raises(ValueError, match=f"^{name} .* is no finite number above 0$"):
        EarlyStop(**{"target": 1.0, name: value})  # type: ignore[arg-type]


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(ValueError, match="check 'epoch' is none of minibatch, epoch_last"):
        EarlyStop(target=1.0, check="epoch")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="an epoch without a reading"):
        EarlyStop(target=1.0).update(0.1).end_epoch().end_epoch()
    with pytest.raises(ValueError, match="a KL of nan is no reading"):
        EarlyStop(target=1.0).update(nan)


@pytest.mark.parametrize(
    ("readings", "said"),
    [
        ([], "there are no readings"),
        ([0.1, 0.2], "readings are by epoch and minibatch"),
        (0.1, "readings are by epoch and minibatch"),
        ([[0.1], []], "epoch 2 has no readings"),
        ([[0.1], [0.2, nan]], "epoch 2: a KL of nan is no reading"),
    ],
)
def test_readings_that_are_none_are_refused(readings: list, said: str):
    with pytest.raises(ValueError, match=said):
        replay_stops(readings, target=1.0)
