"""Top-k forms: the claims by exact sums over every head of small worlds, and wrong twins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.formulas import categorical, partial
from kullback.formulas.claim import Q_INSIDE_P

from .laws import HOLED, QUANTITIES, STEP, WORLDS, World, _moved, _sum, agree

prove = settings(derandomize=True, max_examples=60, deadline=None, database=None)
Form = Callable[[Any, Any, "Headed"], Any]


class Headed(NamedTuple):
    """A world and the ids of which both log-probs are known, be they the likeliest or not."""

    world: World
    inside: np.ndarray

    @property
    def head(self) -> partial.Head:
        with np.errstate(divide="ignore"):
            log_p, log_q = (np.where(self.inside, np.log(x), np.nan) for x in self.world[:2])
        return partial.head(log_p=log_p, log_q=log_q)


def log_r(log_p: Any, log_q: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return log_q - log_p


FORMS: Mapping[str, Form] = {
    "plain": lambda p, q, h: partial.plain(
        log_q_over_p=log_r(p, q), inside=h.inside, head=h.head
    ),
    "conditional": lambda p, q, h: partial.conditional(
        log_q_over_p=log_r(p, q), inside=h.inside, head=h.head
    ),
    "head_control": lambda p, q, h: partial.head_control(inside=h.inside, head=h.head),
    "tail_control": lambda p, q, h: partial.tail_control(
        log_q_over_p=log_r(p, q), inside=h.inside, head=h.head
    ),
}  # fmt: skip
OUTSIDE: Mapping[str, Callable[[Headed], Any]] = {
    "P(T)": lambda h: _sum(h.world.p, ~h.inside, np.ones(h.world.p.shape)),
    "sum over T of q log(q/p)": lambda h: _sum(
        np.where(h.inside, 0, h.world.q),
        log_r(np.log(h.world.p), np.log(h.world.q)),
        np.ones(h.world.p.shape),
    ),
    "-Q(T outside supp p)": lambda h: -np.sum(h.world.q[~h.inside & (h.world.p == 0)]),
}


def headed(worlds: Iterable[World]) -> Iterator[Headed]:
    """Every head of every world: misaligned lists can leave any set of ids."""
    for world in worlds:
        size = len(world.p)
        for count in range(size + 1):
            for chosen in combinations(range(size), count):
                yield Headed(world, np.isin(np.arange(size), chosen))


def quantity(name: str, h: Headed) -> Any:
    return OUTSIDE[name](h) if name in OUTSIDE else QUANTITIES[name](h.world)


def values(form: Form, h: Headed) -> Any:
    with np.errstate(divide="ignore"):
        return form(np.log(h.world.p), np.log(h.world.q), h)


def mean(form: Form, h: Headed) -> Any:
    return _sum(h.world.p, values(form, h), h.world.p)


def variance(form: Form, h: Headed) -> Any:
    return _sum(h.world.p, (values(form, h) - mean(form, h)) ** 2, h.world.p)


def has_mean(name: str, form: Form, cases: Iterable[Headed]) -> bool:
    return all(agree(mean(form, h), quantity(name, h)) for h in cases)


FULL = list(headed(WORLDS))
each = pytest.mark.parametrize("name", FORMS)


def test_every_form_has_a_claim() -> None:
    assert partial.CLAIMS.keys() == FORMS.keys()


@each
def test_the_mean_is_the_claimed_one_whatever_is_in_the_head(name: str) -> None:
    needs_support = Q_INSIDE_P in partial.CLAIMS[name].conditions
    worlds = [w for w in HOLED if not needs_support or not np.any(w.q[w.p == 0])]
    assert has_mean(partial.CLAIMS[name].unbiased_for, FORMS[name], [*FULL, *headed(worlds)])


def test_without_support_the_mean_of_the_tail_control_is_the_claimed_one() -> None:
    fails = [h for h in headed(HOLED) if np.any(h.world.q[(h.world.p == 0) & ~h.inside])]
    claim = partial.CLAIMS["tail_control"]
    assert fails
    assert claim.mean_without_support is not None
    assert has_mean(claim.mean_without_support, FORMS["tail_control"], fails)
    assert not has_mean("0", FORMS["tail_control"], fails)


@each
def test_the_expected_gradient_is_the_claimed_one(name: str) -> None:
    """In the logits of p, through log_p of the token alone; the head is a constant of the log."""
    for h in FULL:
        found = [
            np.sum(h.world.p * FORMS[name](log_p, np.log(h.world.q) + 0j, h)).imag / STEP
            for log_p in _moved(h.world)
        ]
        moved = (h._replace(world=h.world._replace(p=np.exp(z))) for z in _moved(h.world))
        wanted = [
            np.imag(quantity(partial.CLAIMS[name].expected_gradient, m)) / STEP for m in moved
        ]
        assert agree(found, wanted)


@each
def test_a_negative_value_exists_where_one_is_claimed(name: str) -> None:
    lowest = min(np.min(values(FORMS[name], h)) for h in FULL)
    assert (lowest < 0) == partial.CLAIMS[name].can_be_negative


def policies(size: int) -> st.SearchStrategy[np.ndarray]:
    logits = st.lists(st.floats(-6, 6), min_size=size, max_size=size)
    return logits.map(lambda z: np.exp(categorical.log_softmax(z)))


def any_headed() -> st.SearchStrategy[Headed]:
    return st.integers(2, 6).flatmap(
        lambda size: st.builds(
            lambda p, q, chosen: Headed(World(p, q, p), np.array(chosen)),
            policies(size),
            policies(size),
            st.lists(st.booleans(), min_size=size, max_size=size),
        )
    )


def k1(log_p: Any, log_q: Any, _: Headed) -> Any:
    return log_p - log_q


@prove
@given(h=any_headed())
def test_the_conditional_form_never_varies_more_than_k1(h: Headed) -> None:
    assert variance(FORMS["conditional"], h) <= variance(k1, h) * (1 + 1e-9) + 1e-15
    assert has_mean("KL(p||q)", FORMS["conditional"], [h])


def test_the_plain_form_can_vary_more_than_k1() -> None:
    """Not a law of the plain form: which is why it is not the one that is used."""
    assert any(variance(FORMS["plain"], h) > 1.1 * variance(k1, h) for h in FULL)


@prove
@given(h=any_headed())
def test_the_bound_is_below_the_kl_and_never_negative(h: Headed) -> None:
    bound = partial.lower_bound(h.head)
    assert -1e-15 <= bound <= QUANTITIES["KL(p||q)"](h.world) * (1 + 1e-12) + 1e-14


@prove
@given(h=any_headed())
def test_the_centred_form_is_at_least_as_good_as_its_guess(h: Headed) -> None:
    """Off by the multiple that the prefix guesses, the control has mean 0 still."""

    def form(p: Any, q: Any, one: Headed) -> Any:
        guess = partial.centre(one.head) * FORMS["head_control"](p, q, one)
        return FORMS["conditional"](p, q, one) - guess

    assert has_mean("KL(p||q)", form, [h])


def test_an_empty_head_is_k1_and_a_whole_one_is_exact() -> None:
    for w in WORLDS:
        empty, whole = (Headed(w, np.full(len(w.p), full)) for full in (False, True))
        for name in ("plain", "conditional"):
            np.testing.assert_array_equal(values(FORMS[name], empty), values(k1, empty))
            assert agree(values(FORMS[name], whole), QUANTITIES["KL(p||q)"](w))
        assert partial.lower_bound(empty.head) == 0
        assert agree(partial.lower_bound(whole.head), QUANTITIES["KL(p||q)"](w))


# The wrong twins: what is done in practice, and the law that each breaks.


def _appended(log_p: Any, log_q: Any, h: Headed) -> Any:
    """The sampled token taken as part of the head, because the list of the engine ends in it."""
    found = []
    for x, (one, other) in enumerate(zip(log_p, log_q, strict=True)):
        inside = h.inside | (np.arange(len(log_p)) == x)
        with_it = h._replace(inside=inside)
        found.append(partial.conditional(log_q_over_p=other - one, inside=True, head=with_it.head))
    return np.array(found)


def _forgets_the_rest(_p: Any, _q: Any, h: Headed) -> Any:
    return np.full(len(h.inside), partial.biased_head(h.head))


def _renormalized(_p: Any, _q: Any, h: Headed) -> Any:
    return np.full(len(h.inside), partial.biased_head_renormalized(h.head))


def _bound_as_estimate(_p: Any, _q: Any, h: Headed) -> Any:
    return np.full(len(h.inside), partial.lower_bound(h.head))


def _not_divided(log_p: Any, log_q: Any, h: Headed) -> Any:
    """The head where the token is inside, without dividing by the chance of that."""
    return np.where(h.inside, h.head.nats, log_p - log_q)


def _tail_of_p_for_q(log_p: Any, log_q: Any, h: Headed) -> Any:
    """A tail control that takes P(T) for Q(T)."""
    return np.where(h.inside, 0.0, np.expm1(log_q - log_p))


TWINS: Mapping[str, tuple[Form, str]] = {
    "the appended token taken as head": (_appended, "KL(p||q)"),
    "the head alone": (_forgets_the_rest, "KL(p||q)"),
    "the head renormalized": (_renormalized, "KL(p||q)"),
    "the bound called an estimate": (_bound_as_estimate, "KL(p||q)"),
    "the head not divided by its mass": (_not_divided, "KL(p||q)"),
    "a tail control that forgets the mass of q": (_tail_of_p_for_q, "0"),
}


@pytest.mark.parametrize("twin", TWINS)
def test_the_law_convicts_the_wrong_twin(twin: str) -> None:
    wrong, claimed = TWINS[twin]
    assert not has_mean(claimed, wrong, FULL)


def test_half_a_head_is_no_bound() -> None:
    """The heads renormalized can lie above the KL: they are called biased, and not a bound."""
    assert any(
        partial.biased_head_renormalized(h.head) > 1.01 * QUANTITIES["KL(p||q)"](h.world)
        for h in FULL
    )
