"""Adding states is reading everything at once: in any order, in any grouping, for every sum."""

from __future__ import annotations

import random
import re
import zlib
from dataclasses import fields, is_dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, cast

import numpy as np
import pytest

from kullback.columns import Columns, TopK, pack
from kullback.estimation.groups import KEPT
from kullback.estimation.question_state import ROW, QuestionState
from kullback.estimation.sampler_state import SamplerState
from kullback.estimation.summary import Summary
from kullback.estimation.terms import INDEX, PRODUCTS, TERMS, Usable, blocks
from kullback.question import Question, default_questions
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

# Of inner runs the commonest of a batch are kept, pairs go in the order of their keys, and bets on
# what was said before are placed within a batch.
NOT_ONE_PASS = re.compile(r"\.padding\.inner|\.(shared|again).*\.first|\.recalls")
WORLD = cast(Mixture, CLEAN_WORLDS["training_loop"](12))
EACH = WORLD.sequences_per_prompt
QUESTIONS = [
    Question("p", "q"),
    Question("p", "q", "s"),
    Question("p", "q", "s", "p", "sequence_sum"),
]
SHARDS = 13
EXACT = ("sequences", "tokens", "exact_tokens", "cut", "clipped")  # whole numbers
COUNTS = ("masked", "missing", "infinite", "shortest", "longest", "weight_max", "top_k1", "top_k3")
ENDS = ("low", "high", "below", "above")


def a_dump(clusters: int) -> Columns:
    rng = np.random.default_rng(clusters)
    sequences = 4 * clusters
    lengths = rng.integers(0, 9, size=sequences)
    tokens = int(lengths.sum())
    log_probs = {role: -rng.gamma(0.5, 2.0, size=tokens) for role in "pqs"}
    log_probs["p"][rng.random(tokens) < 0.03] = np.nan
    log_probs["q"][rng.random(tokens) < 0.03] = -np.inf
    packed = pack(
        log_probs,
        mask=rng.random(tokens) < 0.9,
        lengths=lengths,
        clusters=rng.integers(0, clusters, size=sequences),
        exact={"KL(p||q)": rng.random(tokens)},
    )
    return replace(
        packed,
        entropy={"s": rng.gamma(1, 1, size=tokens)},
        top_k={"s": TopK(rng.integers(0, 5, (tokens, 1)), np.full((tokens, 1), -1.0))},
        tokens=rng.integers(0, 5, size=tokens),
        token_bytes=[b"abcde"[i : i + 1] for i in rng.integers(0, 5, size=tokens)],
        text=["ab"] * sequences,
        source="all",
        rows=np.arange(sequences),
    )


def shards(columns: Columns, seed: int) -> list[Columns]:
    """Thirteen parts of the sequences, the first of them empty, the others by chance."""
    part = np.random.default_rng(seed).integers(1, SHARDS, size=len(columns.lengths))
    return [columns.take(np.flatnonzero(part == i)) for i in range(SHARDS)]


def merged(parts: list[Any], seed: int) -> Any:
    """Add neighbors, the next pair by chance, until one is left."""
    order, parts = random.Random(seed), list(parts)
    order.shuffle(parts)
    while len(parts) > 1:
        i = order.randrange(len(parts) - 1)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts[0]


def sizes(columns: Columns, question: Question) -> tuple[np.ndarray, np.ndarray]:
    """Σ|x| of every term and product, against which rounding is measured."""
    rows = np.concatenate(
        [b.rows for b in blocks(columns, question, Usable.of(columns, question))], axis=1
    )
    products = [np.abs(rows[INDEX[a]] * rows[INDEX[b]]).sum() for a, b in PRODUCTS]
    return np.abs(rows).sum(axis=1), np.array(products)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
@pytest.mark.parametrize("clusters", [60, 400, 1500])
def test_any_grouping_of_shards_is_one_pass(question: Question, clusters: int) -> None:
    columns = a_dump(clusters)
    whole = QuestionState.of(columns, question)
    assert whole.groups.folded == (clusters > KEPT)
    of_terms, of_products = sizes(columns, question)
    assert (of_terms > 0).sum() > len(TERMS) - 2  # the law says something of nearly every term
    for seed in range(3):
        state = merged([QuestionState.of(c, question) for c in shards(columns, seed)], seed)
        assert np.array_equal(state.groups.keys, whole.groups.keys)
        assert np.array_equal(state.groups.smallest, whole.groups.smallest)
        assert state.groups.folded == whole.groups.folded
        for term, size in zip(TERMS, of_terms, strict=True):
            assert state.by_group(term) == pytest.approx(
                whole.by_group(term), rel=0, abs=1e-12 * size
            ), term
            if f"mean_of_{term}" in ROW:
                assert state.by_group(f"mean_of_{term}") == pytest.approx(
                    whole.by_group(f"mean_of_{term}"), rel=0, abs=1e-12 * size
                ), term
        assert (np.abs(state.products - whole.products) <= 1e-12 * of_products).all()
        assert state.lags == pytest.approx(whole.lags, rel=1e-12, abs=1e-10)
        assert state.association == pytest.approx(whole.association, rel=1e-12, abs=1e-10)
        assert state.size_k1 == pytest.approx(whole.size_k1, rel=1e-12)
        for term in EXACT:
            assert np.array_equal(state.by_group(term), whole.by_group(term)), term
        for name in COUNTS:
            assert getattr(state, name) == getattr(whole, name), name
        assert np.array_equal(state.log_q_over_p.counts, whole.log_q_over_p.counts)
        for name in ENDS:
            assert getattr(state.log_q_over_p, name) == getattr(whole.log_q_over_p, name)


def a_faulty_dump(fault: str) -> Columns:
    """A world with a fault in it, its prompts labelled and versioned as a loop has them."""
    rng = np.random.default_rng(zlib.crc32(fault.encode()))
    columns = FAULTS[fault].inject(WORLD, rng)
    sequences = len(columns.lengths)
    labels = {
        "step": np.repeat([0, 1], sequences // 2),
        "reward": rng.integers(0, 2, sequences),
        "finish_reason": rng.choice(["stop", "length"], sequences),
    }
    logged = {"versions": rng.integers(-1, 3, len(columns)), "rows": np.arange(sequences)}
    missing = {name: one for name, one in logged.items() if getattr(columns, name) is None}
    return replace(columns, labels=labels, **missing)


def differing(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two states differ, by more than rounding where they are sums."""
    if is_dataclass(one):
        names = [field.name for field in fields(one)]
        pairs = [(f"{at}.{name}", getattr(one, name), getattr(other, name)) for name in names]
    elif isinstance(one, dict):
        if one.keys() != other.keys():
            return [at]
        pairs = [(f"{at}[{key}]", one[key], other[key]) for key in one]
    elif isinstance(one, float) or (isinstance(one, np.ndarray) and one.dtype.kind == "f"):
        alike = np.shape(one) == np.shape(other)
        alike = alike and np.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True)
        return [] if alike else [at]
    else:
        return [] if np.array_equal(one, other) else [at]
    return [place for name, a, b in pairs for place in differing(a, b, name)]


@pytest.mark.parametrize("fault", FAULTS)
def test_every_sum_of_a_summary_is_that_of_one_pass(fault: str) -> None:
    """Cut between prompts, since what begins alike is looked for within a batch."""
    columns = a_faulty_dump(fault)
    asked = default_questions(tuple(columns.log_probs), None)
    cuts = [EACH * prompts for prompts in (0, 0, 5, 5, 8, WORLD.prompts)]
    parts = [Summary.of(columns.take(slice(a, b)), asked) for a, b in pairwise(cuts)]
    wrong = differing(reduce(add, parts), Summary.of(columns, asked))
    assert [at for at in wrong if not NOT_ONE_PASS.match(at)] == []


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_adding_commutes_up_to_rounding(question: Question) -> None:
    a, b, *_ = (QuestionState.of(c, question) for c in shards(a_dump(400), 5)[1:])
    one, other = a + b, b + a
    assert np.array_equal(one.groups.keys, other.groups.keys)
    assert one.groups.sums == pytest.approx(other.groups.sums, rel=1e-13)
    assert (one.top_k1, one.top_k3) == (other.top_k1, other.top_k3)
    assert (one.shortest, one.longest) == (other.shortest, other.longest)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_an_empty_state_changes_nothing(question: Question) -> None:
    columns = a_dump(60)
    state, nothing = (
        QuestionState.of(c, question) for c in (columns, columns.take(np.zeros(0, np.int64)))
    )
    masked = QuestionState.of(replace(columns, mask=~columns.mask & False), question)
    assert (masked.tokens, masked.masked) == (0, len(columns))
    for both in (state + nothing, nothing + state, masked + state, state + masked):
        assert np.array_equal(both.groups.keys, state.groups.keys)
        assert np.array_equal(both.groups.sums, state.groups.sums)
        for name in ("missing", "infinite", "shortest", "longest", "weight_max", "top_k1"):
            assert getattr(both, name) == getattr(state, name), name
    sampled = SamplerState.of(columns, "s")
    empty = SamplerState.of(columns.take(np.zeros(0, np.int64)), "s")
    assert np.array_equal((sampled + empty).groups.sums, sampled.groups.sums)
