from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import product
from math import inf, log
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kullback as kb
from kullback.control.evidence import STAKES, Evidence
from kullback.control.prompt_sums import PromptSums
from kullback.worlds import Tabular, three_tokens

Array = np.ndarray
G = np.array(STAKES)[:, None]
PROMPTS = st.lists(st.tuples(st.floats(0, 100), st.integers(0, 50)), min_size=1, max_size=9)


def sums(k3: list[float] | Array, tokens: list[int] | Array, first: int = 0) -> PromptSums:
    return PromptSums.of_ids(np.arange(first, first + len(k3)), k3=k3, tokens=tokens)


# Every prompt of a small language, with its probability: the expected wealth is a finite sum.


class Prompts(NamedTuple):
    """What a prompt can bring: [outcomes], and [outcomes, sequences, positions] by token."""

    probability: Array
    k1: Array
    k3: Array
    alive: Array

    @property
    def total(self) -> Array:
        return self.k3.sum(axis=(1, 2))

    @property
    def tokens(self) -> Array:
        return self.alive.sum(axis=(1, 2))

    @property
    def limit(self) -> float:
        """The KL per token over all prompts: E S / E T."""
        return float(self.probability @ self.total / (self.probability @ self.tokens))


def every_prompt(world: Tabular, others: list[str], sequences: int) -> Prompts:
    """Prompts of as many kinds as there are others, equally likely, some completions of each."""
    p, chance, alive = world.by_token("current"), world.probability("current"), world.tree.alive
    rows = list(product(range(len(chance)), repeat=sequences))
    ratios = np.concatenate([(world.by_token(q) - p)[rows] for q in others])
    probability = np.tile(chance[rows].prod(axis=1), len(others)) / len(others)
    there = np.tile(alive[rows], (len(others), 1, 1))
    return Prompts(probability, kb.k1(ratios) * there, kb.k3(ratios) * there, there)


def two_ends() -> Tabular:
    """Two policies that differ in the probability of the end alone."""
    tables = {"current": [[0.6, 0.4]] * 6, "reference": [[0.8, 0.2]] * 6}
    log_probs = {role: np.log(table) for role, table in tables.items()}
    return Tabular(log_probs, sampler="current", max_length=6, eos=1)


WORLDS = {
    "one kind": every_prompt(three_tokens(ends=False), ["reference"], 1),
    "two kinds": every_prompt(three_tokens(ends=False), ["reference", "old"], 1),
    "two kinds, random lengths": every_prompt(three_tokens(ends=True), ["reference", "old"], 1),
    "two kinds, two completions": every_prompt(three_tokens(ends=True), ["reference", "old"], 2),
    "other ends": every_prompt(two_ends(), ["reference"], 1),
}
Bet = Callable[[Prompts, float], Array]  # prompts and a limit to the wealth, [stakes, outcomes]


def evidence(prompts: Prompts, limit: float) -> Array:
    """The wealth of the evidence after each possible first prompt."""
    start = Evidence(limit=limit, most_tokens=int(prompts.tokens.max()))
    after = [
        start.update(sums([total], [tokens])).log_wealth
        for total, tokens in zip(prompts.total, prompts.tokens, strict=True)
    ]
    return np.exp(after).T


def per_token(prompts: Prompts, limit: float) -> Array:
    gain = np.where(prompts.alive, prompts.k3 / limit - 1, 0.0).reshape(1, len(prompts.k3), -1)
    return (1 + G[:, :, None] * gain).prod(axis=-1)


def per_sequence(prompts: Prompts, limit: float) -> Array:
    lengths = prompts.alive.sum(axis=2)
    gain = (prompts.k3.sum(axis=2) / limit - lengths) / lengths.max()
    return (1 + G[:, :, None] * gain).prod(axis=-1)


def of_means(prompts: Prompts, limit: float) -> Array:
    return 1 + G * (prompts.total / prompts.tokens / limit - 1)


def of_k1(prompts: Prompts, limit: float) -> Array:
    gain = prompts.k1.sum(axis=(1, 2)) / limit - prompts.tokens
    return 1 + G * gain / prompts.tokens.max()


def of_the_typical_length(prompts: Prompts, limit: float) -> Array:
    return 1 + G * (prompts.total / limit - prompts.tokens) / (prompts.tokens.max() / 2)


def best_stake(prompts: Prompts, limit: float) -> Array:
    return np.broadcast_to(evidence(prompts, limit).max(axis=0), (len(STAKES), len(prompts.k3)))


def is_fair(bet: Bet) -> bool:
    """Where the KL is the limit, one prompt leaves the expected wealth of each stake at 1."""
    wealth = [bet(w, w.limit) @ w.probability for w in WORLDS.values()]
    return bool(np.allclose(wealth, 1.0, rtol=0, atol=1e-12))


def never_ruins(bet: Bet) -> bool:
    return all((bet(w, w.limit) > 0).all() for w in WORLDS.values())


LAWS = {"fair": is_fair, "never ruins": never_ruins}
TWINS: dict[str, tuple[Bet, str]] = {
    "a factor per token": (per_token, "fair"),
    "a factor per sequence": (per_sequence, "fair"),
    "the mean of each prompt's tokens": (of_means, "fair"),
    "the best stake": (best_stake, "fair"),
    "k1": (of_k1, "never ruins"),
    "a bound that is none": (of_the_typical_length, "never ruins"),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_bet_keeps_the_law(law: str):
    assert LAWS[law](evidence)


@pytest.mark.parametrize("twin", TWINS)
def test_a_wrong_twin_breaks_its_law(twin: str):
    bet, law = TWINS[twin]
    assert not LAWS[law](bet)


@pytest.mark.parametrize("twin", ["a factor per token", "a factor per sequence"])
def test_a_factor_for_what_shares_a_prompt_wins_under_the_null(twin: str):
    """Each stake's expected wealth is above 1 where completions share the kind of the prompt."""
    world = WORLDS["two kinds, two completions"]
    wealth = TWINS[twin][0](world, world.limit) @ world.probability
    assert (wealth[:3] > 1 + 1e-4).all()


def test_a_mean_of_token_means_wins_under_the_null_where_ends_differ():
    world = WORLDS["other ends"]
    assert (of_means(world, world.limit) @ world.probability > 1 + 1e-3).all()


@pytest.mark.parametrize("name", WORLDS)
def test_the_expected_wealth_falls_below_the_limit_and_grows_above(name: str):
    world = WORLDS[name]
    for factor, sign in ((0.8, 1), (1.25, -1)):
        wealth = evidence(world, factor * world.limit) @ world.probability
        assert (sign * (wealth - 1) > 0).all()


@pytest.mark.parametrize("name", ["two kinds", "two kinds, random lengths", "other ends"])
def test_the_expected_e_after_two_prompts_is_1_at_the_limit(name: str):
    world = WORLDS[name]
    start = Evidence(limit=world.limit, most_tokens=int(world.tokens.max()))
    rows = list(zip(world.total, world.tokens, world.probability, strict=True))
    expected = sum(
        p * q * start.update(sums([s, u], [t, v])).e_value
        for (s, t, p), (u, v, q) in product(rows, repeat=2)
    )
    assert expected == pytest.approx(1.0, abs=1e-12)


# The state.


@given(PROMPTS, st.data())
def test_any_split_into_batches_gives_the_same(prompts: list, data: st.DataObject):
    k3, tokens = np.array([p[0] for p in prompts]), np.array([p[1] for p in prompts])
    whole = Evidence(limit=0.1, most_tokens=50).update(sums(k3, tokens))
    split = Evidence(limit=0.1, most_tokens=50)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(k3)), max_size=4)))
    for start, end in zip([0, *cuts], [*cuts, len(k3)], strict=True):
        split = split.update(sums(k3[start:end], tokens[start:end], first=start))
    assert split.log_wealth == pytest.approx(whole.log_wealth, rel=1e-12, abs=1e-12)
    assert (split.prompts, split.tokens) == (whole.prompts, whole.tokens)
    assert split.highest >= whole.highest - 1e-9


@given(PROMPTS, st.floats(0, 100), st.integers(0, 8))
def test_more_k3_is_more_evidence(prompts: list, more: float, where: int):
    k3, tokens = np.array([p[0] for p in prompts]), np.array([p[1] for p in prompts])
    start, raised = Evidence(limit=0.1, most_tokens=50), k3.copy()
    raised[where % len(k3)] += more
    assert start.update(sums(raised, tokens)).log_e >= start.update(sums(k3, tokens)).log_e - 1e-12


@given(PROMPTS, st.floats(1e-3, 10), st.floats(1, 3))
def test_a_larger_limit_and_a_larger_bound_are_no_more_evidence(
    prompts: list, limit: float, factor: float
):
    k3, tokens = [p[0] for p in prompts], [p[1] for p in prompts]
    found = Evidence(limit=limit, most_tokens=50).update(sums(k3, tokens))
    larger = Evidence(limit=factor * limit, most_tokens=50).update(sums(k3, tokens))
    assert larger.log_e <= found.log_e + 1e-9
    assert found.log_e >= 9 * log(1 - max(STAKES)) - 1e-9
    unit = Evidence(limit=factor * limit, most_tokens=50).update(
        sums(np.array(k3) * factor, tokens)
    )
    assert unit.log_wealth == pytest.approx(found.log_wealth, rel=1e-6, abs=1e-6)


def test_the_wealth_is_the_product_by_hand():
    found = Evidence(limit=0.5, most_tokens=10).update(sums([2.0, 8.0], [4, 10]))
    assert np.exp(found.log_wealth) == pytest.approx(
        [(1 + g * 0.0) * (1 + g * 0.6) for g in STAKES]
    )
    assert found.e_value == pytest.approx(1 + 0.6 * np.mean(STAKES))
    assert (found.prompts, found.tokens, found.mean) == (2, 14, pytest.approx(10 / 14))


def test_what_was_once_decided_stays_decided():
    high = Evidence(limit=0.1, most_tokens=1).update(sums([1.0] * 5, [1] * 5))
    low = high.update(sums([0.0] * 500, [1] * 500, first=5))
    assert high.decided(0.05)
    assert low.decided(0.05)
    assert low.e_value < 1e-3
    assert low.p_value == high.p_value == pytest.approx(1 / high.e_value)


def test_an_update_leaves_the_state_as_it_was():
    start = Evidence(limit=0.1, most_tokens=5)
    start.update(sums([3.0], [5]))
    assert start == Evidence(limit=0.1, most_tokens=5)
    assert (start.e_value, start.p_value, start.decided(0.5)) == (1.0, 1.0, False)
    assert np.isnan(start.mean)
    nothing = start.update(sums([], np.zeros(0, dtype=int)))
    assert nothing == start


def test_it_can_be_kept_and_taken_up_again():
    state = Evidence(limit=0.1, most_tokens=5).update(sums([3.0], [5]))
    kept = json.loads(json.dumps(asdict(state)))
    assert Evidence(**{**kept, "log_wealth": tuple(kept["log_wealth"])}) == state
    assert pickle.loads(pickle.dumps(state)) == state


def test_nothing_overflows():
    state = Evidence(limit=1e-300, most_tokens=1)
    for batch in range(20):
        state = state.update(sums([1e300] * 100, [1] * 100, first=100 * batch))
    assert state.e_value == inf
    assert state.p_value == 0.0
    finite = Evidence(limit=1.0, most_tokens=1).update(sums([1e300] * 100, [1] * 100))
    assert 60_000 < finite.log_e < inf
    poor = Evidence(limit=1.0, most_tokens=1).update(sums([0.0] * 10**6, [1] * 10**6))
    assert -25_000 < poor.log_e < 0
    assert poor.e_value == 0.0
    assert poor.p_value == 1.0


def test_a_token_that_q_forbids_decides():
    state = Evidence(limit=1.0, most_tokens=1).update(sums([inf], [1]))
    assert state.log_e == state.e_value == inf
    assert state.update(sums([0.0], [1], first=1)).decided(1e-9)


def test_states_share_the_alpha():
    state = Evidence(limit=1.0, most_tokens=1).update(sums([100.0] * 2, [1] * 2))
    edge = state.e_value
    assert state.decided(1.0001 / edge)
    assert not state.decided(0.9999 / edge)
    assert state.decided(8.001 / edge, states=8)
    assert not state.decided(7.999 / edge, states=8)


def test_in_sample_is_marked():
    state = Evidence(limit=0.1, most_tokens=5, in_sample=True)
    assert state.marks == state.update(sums([1.0], [5])).marks == ("in-sample",)
    assert str(state).endswith("mean k3 nan; in-sample")
    assert replace(state, in_sample=False).marks == ()


@pytest.mark.parametrize("limit", [0.0, -1.0, inf, float("nan")])
def test_a_limit_that_is_none_is_refused(limit: float):
    with pytest.raises(ValueError, match="is no KL above 0"):
        Evidence(limit=limit, most_tokens=5)


@pytest.mark.parametrize("most_tokens", [0, -3, 2.5, inf, float("nan")])
def test_a_bound_that_is_none_is_refused(most_tokens: float):
    with pytest.raises(ValueError, match="is no number of tokens"):
        Evidence(limit=0.1, most_tokens=most_tokens)  # type: ignore[arg-type]


def test_a_prompt_beyond_the_bound_is_refused():
    with pytest.raises(ValueError, match="a prompt has 6 tokens, more than most_tokens=5"):
        Evidence(limit=0.1, most_tokens=5).update(sums([0.0, 0.0], [5, 6]))


@pytest.mark.parametrize(("alpha", "states"), [(0.0, 1), (1.0, 1), (0.05, 0), (0.05, 1.5)])
def test_no_alpha_and_no_states_are_refused(alpha: float, states: int):
    with pytest.raises(ValueError, match=r"is not between 0 and 1|is no number of states"):
        Evidence(limit=0.1, most_tokens=5).decided(alpha, states=states)


# Chance, with a seed.


def alarms(rng: np.random.Generator, over: float, *, per_look: bool) -> float:
    """The share of 300 runs that decide within 50 looks at 16 prompts; KL = over × limit.

    A prompt's KL is log-normal with σ = 1.2, its length geometric, cut at 60.
    """
    count = 0
    for _ in range(300):
        state = start = Evidence(limit=1.0, most_tokens=60)
        for _ in range(50):
            effect = over * rng.lognormal(-(1.2**2) / 2, 1.2, size=16)
            tokens = np.minimum(rng.geometric(0.05, size=16), 60)
            state = (start if per_look else state).update(sums(effect * tokens, tokens))
            if state.decided(0.05, states=50 if per_look else 1):
                count += 1
                break
    return count / 300


@pytest.mark.parametrize("per_look", [False, True])
def test_at_the_limit_it_seldom_alarms(per_look: bool):
    assert alarms(np.random.default_rng(0), 1.0, per_look=per_look) <= 0.05


def test_above_the_limit_it_alarms():
    assert alarms(np.random.default_rng(0), 2.0, per_look=False) == 1.0
    assert alarms(np.random.default_rng(0), 8.0, per_look=True) > 0.5
