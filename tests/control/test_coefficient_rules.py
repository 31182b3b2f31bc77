from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kullback.control.coefficient_rules import BandRule, ProportionalRule

KLS = st.floats(-1e6, 1e6) | st.just(inf)
TARGETS = st.floats(1e-4, 1e3)
PPO = BandRule(above=1.5, below=1 / 1.5, up=2, down=0.5)
RULES = st.one_of(
    st.builds(ProportionalRule, horizon=st.floats(1, 1e6), clip=st.floats(0.01, 0.9)),
    st.builds(
        BandRule,
        above=st.floats(1, 5),
        below=st.floats(0.1, 1),
        up=st.floats(1.01, 4),
        down=st.floats(0.1, 0.99),
    ),
)


def bounds(rule: ProportionalRule | BandRule) -> tuple[float, float]:
    """The smallest and the largest factor, written down apart."""
    if isinstance(rule, BandRule):
        return rule.down, rule.up
    return 1 - rule.clip / rule.horizon, 1 + rule.clip / rule.horizon


@given(RULES, KLS, KLS, TARGETS)
def test_a_larger_kl_never_lowers_the_factor(
    rule: ProportionalRule | BandRule, one: float, other: float, target: float
):
    low, high = sorted((one, other))
    assert rule.factor(low, target=target) <= rule.factor(high, target=target)
    assert rule.side(low, target=target) <= rule.side(high, target=target)


@given(RULES, KLS, TARGETS)
def test_the_factor_is_bounded_and_reaches_its_bound_where_the_size_is_lost(
    rule: ProportionalRule | BandRule, kl: float, target: float
):
    smallest, largest = bounds(rule)
    factor, side = rule.factor(kl, target=target), rule.side(kl, target=target)
    assert smallest * (1 - 1e-15) <= factor <= largest * (1 + 1e-15)
    if side:
        assert factor == pytest.approx(largest if side > 0 else smallest, rel=1e-15)


@given(RULES, TARGETS)
def test_at_the_target_nothing_moves(rule: ProportionalRule | BandRule, target: float):
    assert rule.factor(target, target=target) == 1
    assert rule.side(target, target=target) == 0


def test_the_proportional_rule_by_hand():
    rule = ProportionalRule(horizon=10, clip=0.2)
    by_kl = {-9.0: 0.9, 0.0: 0.9, 0.8: 0.9, 0.9: 0.95, 1.1: 1.05, 1.2: 1.1, inf: 1.1}
    for kl, factor in by_kl.items():
        assert rule.factor(kl, target=1.0, n=5) == pytest.approx(factor, rel=1e-12)
    assert [rule.side(kl, target=1.0) for kl in (-9.0, 0.7, 0.9, 1.1, 1.3)] == [-1, -1, 0, 0, 1]


@pytest.mark.parametrize(
    ("rule", "factors"),
    [(BandRule(), [0.5, 0.5, 1, 1, 1, 1, 1.5]), (PPO, [0.5, 0.5, 0.5, 1, 1, 2, 2])],
    ids=["RLlib", "PPO"],
)
def test_the_rules_with_a_band_by_hand(rule: BandRule, factors: list[float]):
    kls = (-1.0, 0.49, 0.6, 0.7, 1.4, 2.0, 2.01)
    assert [rule.factor(kl, target=1.0) for kl in kls] == factors


@pytest.mark.parametrize("value", [0, -1, inf, nan])
@pytest.mark.parametrize("name", ["horizon", "clip"])
def test_a_horizon_or_clip_that_is_none_is_refused(name: str, value: float):
    with pytest.raises(ValueError, match=f"^{name} .* is no finite number above 0$"):
        ProportionalRule(**{"horizon": 10, name: value})


@pytest.mark.parametrize("n", [0, -1, inf, nan])
def test_an_n_that_is_none_is_refused(n: float):
    with pytest.raises(ValueError, match=r"^n .* is no finite number above 0$"):
        ProportionalRule(horizon=10).factor(1.0, target=1.0, n=n)


@pytest.mark.parametrize("kl", [0.0, 1.0, 2.0])
def test_an_n_that_could_turn_the_sign_is_refused_whatever_the_kl(kl: float):
    rule = ProportionalRule(horizon=100)
    assert rule.factor(kl, target=1.0, n=499) > 0
    with pytest.raises(ValueError, match=r"n=500 with a clip of 0.2 .* a horizon far above 100"):
        rule.factor(kl, target=1.0, n=500)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"above": 0.9}, "does not hold the target"),
        ({"below": 1.1}, "does not hold the target"),
        ({"up": 1.0}, "up=1 must raise the coefficient"),
        ({"down": 1.0}, "down=1 lower it"),
        ({"down": 0.0}, "down 0 is no finite number above 0"),
        ({"above": nan}, "above nan is no finite number above 0"),
        ({"up": inf}, "up inf is no finite number above 0"),
    ],
)
def test_a_band_or_factor_that_goes_the_wrong_way_is_refused(given: dict[str, float], said: str):
    with pytest.raises(ValueError, match=said):
        BandRule(**given)
