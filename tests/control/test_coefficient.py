from __future__ import annotations

import pickle
from math import inf, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kullback.control.coefficient import LARGEST, AdaptiveCoefficient
from kullback.control.coefficient_rules import BandRule, ProportionalRule

ZIEGLER = ProportionalRule(horizon=10_000)
KLS = st.lists(st.floats(-100, 100) | st.just(inf), max_size=30)
START = AdaptiveCoefficient(0.1, target=1.0, rule=BandRule())


def fed(state: AdaptiveCoefficient, kls: list[float], n: float = 1) -> AdaptiveCoefficient:
    for kl in kls:
        state = state.update(kl, n)
    return state


@given(KLS, st.sampled_from([BandRule(), ZIEGLER]))
def test_it_is_the_product_of_the_factors_and_counts_what_it_read(
    kls: list[float], rule: BandRule | ProportionalRule
):
    found = fed(AdaptiveCoefficient(0.3, 2.0, rule), kls, n=64)
    factors = [rule.factor(kl, target=2.0, n=64) for kl in kls]
    assert found.value == pytest.approx(0.3 * np.prod(factors), rel=1e-12)
    assert found.updates == len(kls)
    assert found.negative == sum(kl < 0 for kl in kls)
    sides = [rule.side(kl, target=2.0) for kl in kls]
    assert found.clipped == sum(side != 0 for side in sides)
    run = 0
    while run < len(sides) and sides[-1] != 0 and sides[-1 - run] == sides[-1]:
        run += 1
    assert found.saturated == run * (sides[-1] if sides else 0)


@given(KLS, st.integers(0, 30), st.floats(0, 100))
def test_a_larger_reading_never_leaves_a_smaller_coefficient(
    kls: list[float], where: int, more: float
):
    assume(kls)
    raised = list(kls)
    raised[where % len(kls)] += more
    for rule in (BandRule(), ZIEGLER):
        start = AdaptiveCoefficient(0.3, 2.0, rule)
        assert fed(start, raised).value >= fed(start, kls).value * (1 - 1e-12)


def test_a_run_one_way_ends_within_the_reach_and_at_the_other_side():
    high = fed(START, [5.0] * 7)
    assert (high.saturated, high.update(1.0).saturated, high.update(0.1).saturated) == (7, 0, -1)
    assert fed(START, [1.9] * 50) == AdaptiveCoefficient(0.1, 1.0, BandRule(), updates=50)
    near = fed(AdaptiveCoefficient(0.1, 1.0, ProportionalRule(horizon=10)), [1.1] * 9)
    assert (near.saturated, near.clipped) == (0, 0)
    assert near.value > 0.1


def test_an_update_leaves_the_state_as_it_was_and_it_can_be_kept():
    state = fed(START, [5.0, -1.0])
    state.update(9.0)
    assert state == fed(START, [5.0, -1.0])
    assert pickle.loads(pickle.dumps(state)) == state
    assert str(state) == (
        "0.075 after 2 updates, 1 readings below 0, 2 clipped; lowered 1 times in a row"
    )
    assert str(START) == "0.1 after 0 updates, 0 readings below 0, 0 clipped"


@given(st.floats(1e-6, 1e6), st.floats(1.05, 3.0), st.sampled_from(sorted(LARGEST)))
def test_the_updates_to_overflow_are_those_of_the_loop(value: float, up: float, dtype):
    state = AdaptiveCoefficient(value, target=1.0, rule=BandRule(up=up))
    exact, count = (np.log(LARGEST[dtype]) - np.log(value)) / np.log(up), 0
    assume(abs(exact - round(exact)) > 1e-6)
    while value <= LARGEST[dtype]:
        value, count = value * up, count + 1
    assert state.updates_to_overflow(dtype) == count


def test_the_updates_to_overflow_count_down_and_follow_n():
    state = AdaptiveCoefficient(0.2, target=0.01, rule=BandRule())
    assert state.update(0.5).updates_to_overflow() == state.updates_to_overflow() - 1
    slow = AdaptiveCoefficient(0.2, target=6.0, rule=ZIEGLER)
    once, twice = (slow.updates_to_overflow("float64", n=n) for n in (1, 2))
    assert once / twice == pytest.approx(2, rel=1e-3)
    assert AdaptiveCoefficient(1e39, 1.0, BandRule()).updates_to_overflow("float32") == 0
    still = AdaptiveCoefficient(1.0, 1.0, ProportionalRule(horizon=1e300))
    assert still.updates_to_overflow() == inf


def test_the_update_that_overflows_is_refused():
    state = AdaptiveCoefficient(0.2, target=0.01, rule=BandRule())
    for _ in range(int(state.updates_to_overflow("float64")) - 1):
        state = state.update(0.5)
    assert state.saturated == 1754
    with pytest.raises(ValueError, match=r"^a coefficient of inf: the KL does not come near the"):
        state.update(0.5)
    with pytest.raises(ValueError, match=r"^a coefficient of 0: .* target of 1 whatever"):
        AdaptiveCoefficient(5e-324, target=1.0, rule=BandRule()).update(0.1)


@pytest.mark.parametrize("value", [0, -1, inf, nan])
@pytest.mark.parametrize("name", ["value", "target"])
def test_a_coefficient_or_target_that_is_none_is_refused(name: str, value: float):
    said = {"value": "coefficient"}.get(name, name)
    with pytest.raises(ValueError, match=f"^{said} .* is no finite number above 0$"):
        AdaptiveCoefficient(**{"value": 0.1, "target": 1.0, "rule": BandRule(), name: value})


@pytest.mark.parametrize("kl", [nan, -inf])
def test_a_kl_that_is_no_reading_is_refused(kl: float):
    with pytest.raises(ValueError, match="is no reading"):
        START.update(kl)


def test_a_rule_by_its_name_is_refused():
    with pytest.raises(TypeError, match="rule 'proportional' is no ProportionalRule"):
        AdaptiveCoefficient(0.1, target=1.0, rule="proportional")  # type: ignore[arg-type]


def test_a_format_that_is_none_is_refused():
    with pytest.raises(ValueError, match="dtype 'int8' is none of float32, float64"):
        START.updates_to_overflow("int8")  # type: ignore[arg-type]
