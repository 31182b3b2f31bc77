from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import exp, isnan, log
from typing import NamedTuple

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.estimation import terms
from kullback.estimation.terms import INDEX, TERMS, Usable, blocks, by_sequence
from kullback.formulas.k_family import k1, k2, k3
from kullback.question import Question

QUESTIONS = ["KL(p||q)", "KL(p||q) ~ q", "KL(p||q) ~ s", "KL(p||q) ~ s prefixes p"]
INF, NAN = float("inf"), float("nan")


def rows(columns: Columns, question: Question) -> np.ndarray:
    usable = Usable.of(columns, question)
    parts = [block.rows for block in blocks(columns, question, usable)]
    return np.concatenate([np.zeros((len(TERMS), 0)), *parts], axis=1)


def sums(columns: Columns, question: Question) -> np.ndarray:
    total = np.zeros((len(TERMS), len(columns.lengths)))
    for block in blocks(columns, question, Usable.of(columns, question)):
        touched, part = by_sequence(block, columns.lengths)
        total[:, touched] += part
    return total


def a_batch() -> Columns:
    """Sequences of many lengths, empty ones too, with masked, missing and exact tokens."""
    rng = np.random.default_rng(0)
    lengths = np.array([3, 0, 15, 1, 0, 0, 8, 2, 14, 0])
    tokens = lengths.sum()
    log_probs = {role: -rng.gamma(1.0, 1.0, size=tokens) for role in "pqs"}
    log_probs["q"][[4, 20]] = NAN, -9999.0
    log_probs["s"][30] = NAN
    exact = np.where(rng.random(tokens) < 0.8, rng.random(tokens), NAN)
    mask = rng.random(tokens) < 0.8
    mask[[4, 20, 30]] = True
    for role in "pqs":
        log_probs[role] = np.where(mask, log_probs[role], rng.choice([NAN, INF, -INF, 1e308]))
    return pack(log_probs, mask=mask, lengths=lengths, exact={"KL(p||q)": exact})


def by_hand(columns: Columns, question: Question) -> np.ndarray:
    """Every term of every token by its plain formula, one token at a time."""
    found = np.zeros((len(TERMS), len(columns)))
    exact, token = columns.exact["KL(p||q)"], 0
    for length in columns.lengths:
        before = 1.0
        for t in range(token, token + length):
            p, q, s = (
                float(columns.log_probs[role][t])
                for role in (question.p, question.q, question.sampler)
            )
            if columns.mask[t] and not isnan(exact[t]):
                found[INDEX["exact"], t], found[INDEX["exact_tokens"], t] = exact[t], 1
            if not columns.mask[t] or isnan(p + q + s) or -9999 in (p, q, s):
                continue
            r, w = exp(q - p), before * exp(p - s)
            terms = {"k1": log(1 / r), "k2": log(r) ** 2 / 2, "k3": r - 1 - log(r)}
            terms |= {f"raw_{name}": value for name, value in terms.items()}
            terms |= {name: w * terms[name] for name in ("k1", "k2", "k3")}
            terms |= {"tokens": 1, "weight": w, "weight_squared": w * w}
            terms |= {"q_over_s": w * r - before, "log_p_over_s": p - s, "log_q_over_s": q - s}
            terms["bet"] = log(0.9 + 0.1 * exp(q - s))
            u = r if question.weight == "none" else w
            terms |= {"truncated": min(u, 2.0), "cut": u > 2.0, "clipped": not 0.8 <= u <= 1.2}
            for name, value in terms.items():
                found[INDEX[name], t] = value
            before *= exp(p - s) if question.weight == "cumulative" else 1
        token += length
    return found


@pytest.mark.parametrize("text", QUESTIONS)
def test_each_term_is_its_plain_formula(text: str) -> None:
    columns, question = a_batch(), Question.parse(text)
    expected, found = by_hand(columns, question), rows(columns, question)
    for name, row in INDEX.items():
        assert found[row] == pytest.approx(expected[row], rel=1e-12, abs=1e-14), name


@pytest.mark.parametrize("text", QUESTIONS)
def test_blocks_may_end_anywhere(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, question = a_batch(), Question.parse(text)
    whole, by_hand = rows(columns, question), sums(columns, question)
    cuts = np.cumsum([0, *columns.lengths])
    plain = [[row[a:b].sum() for a, b in pairwise(cuts)] for row in whole]
    assert by_hand == pytest.approx(np.array(plain), rel=1e-12, abs=1e-14)
    for size in (1, 7, 15):
        monkeypatch.setattr(terms, "BLOCK", size)
        assert np.array_equal(rows(columns, question), whole)
        assert sums(columns, question) == pytest.approx(by_hand, rel=1e-12, abs=1e-14)


def test_single_precision_is_subtracted_in_double() -> None:
    p, q = np.array([-1.0000001], np.float32), np.array([-1e-9], np.float32)
    found = rows(pack({"p": p, "q": q}, lengths=1), Question("p", "q"))
    assert found[INDEX["k1"], 0] == float(p[0]) - float(q[0])


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1e-2, 1.0, 30.0, 700.0])
def test_the_fast_terms_are_the_public_formulas(size: float) -> None:
    """expm1(x) − x cancels where x is small; there a sum does not see it."""
    x = np.array([size, -size, 1.7 * size if size < 400 else size])
    found = rows(pack({"p": 0 * x, "q": x}, lengths=1), Question("p", "q"))
    tolerance = 2e-4 if size < 1e-6 else 1e-9 if size < 1e-2 else 1e-13
    assert found[INDEX["k3"]] == pytest.approx(k3(x), rel=tolerance, abs=0)
    assert found[INDEX["k2"]] == pytest.approx(k2(x), rel=1e-15, abs=0)
    assert found[INDEX["k1"]].tolist() == k1(x).tolist()
    assert (found[INDEX["k3"]] >= 0).all()


@pytest.mark.parametrize(
    ("text", "p", "q", "s", "verdict"),
    [
        ("KL(p||q)", -1, -2, NAN, "usable"),
        ("KL(p||q)", NAN, -2, -1, "missing"),
        ("KL(p||q)", -1, -9999, -1, "missing"),
        ("KL(p||q)", -1, -INF, -1, "infinite"),
        ("KL(p||q)", -INF, -1, -1, "infinite"),
        ("KL(p||q)", -1, INF, -1, "infinite"),
        ("KL(p||q) ~ s", -1, -2, NAN, "missing"),
        ("KL(p||q) ~ s", -1, -2, -INF, "infinite"),
        ("KL(p||q) ~ s", -1, -INF, -1, "infinite"),
        ("KL(p||q) ~ s", -INF, -1, -1, "usable"),
        ("KL(p||q) ~ s", -INF, -INF, -1, "usable"),
        ("KL(p||q) ~ s", INF, -1, -1, "infinite"),
    ],
)
def test_a_token_is_usable_masked_missing_or_infinite(text, p, q, s, verdict: str) -> None:
    columns = pack({"p": [[p, p]], "q": [[q, q]], "s": [[s, s]]}, mask=[[1, 0]])
    usable = Usable.of(columns, Question.parse(text))
    assert usable.flags.tolist() == [verdict == "usable", False]
    assert usable.masked == 1
    assert (usable.missing, usable.infinite) == (verdict == "missing", verdict == "infinite")


class World(NamedTuple):
    """Three policies over sequences of two tokens out of three, each sequence once.

    Row 0 of a policy holds its probabilities of the first token, row 1 + a those behind token a.
    """

    columns: Columns
    probability: np.ndarray  # of each sequence under s
    policy: dict[str, np.ndarray]
    goes_on: np.ndarray

    def over(self, role: str, at: np.ndarray) -> float:
        """The expected sum over a role's prefixes of what is known at each of them."""
        return float(at[0] + (self.policy[role][0] * self.goes_on) @ at[1:])

    def divergence(self, p: str, q: str, power: int = 1) -> np.ndarray:
        """Σ p (log p/q)^power at each prefix, where 0 log 0 = 0."""
        there = self.policy[p] > 0
        p_there, q_there = (np.where(there, self.policy[role], 1.0) for role in (p, q))
        return (self.policy[p] * np.log(p_there / q_there) ** power).sum(axis=1)


def a_world(ends: bool, hole: bool) -> World:
    """``ends``: token 0 ends a sequence. ``hole``: p never takes token 2, and q not always."""
    rng = np.random.default_rng(5)
    policy = {role: rng.dirichlet(np.ones(3), size=4) for role in "pqs"}
    if hole:
        policy["p"][:, 2] = policy["q"][2, 2] = 0.0
        policy = {role: p / p.sum(axis=1, keepdims=True) for role, p in policy.items()}
    goes_on = np.array([not ends, True, True])
    sequences = [[a, b] for a in range(3) for b in range(3) if goes_on[a]] + [[0]] * ends
    prefix = np.array([1 + s[0] if t else 0 for s in sequences for t in range(len(s))])
    probs = {role: p[prefix, np.concatenate(sequences)] for role, p in policy.items()}
    with np.errstate(divide="ignore"):
        log_probs = {role: np.log(values) for role, values in probs.items()}
    columns = pack(log_probs, lengths=[len(sequence) for sequence in sequences])
    starts = columns.ends - columns.lengths
    return World(columns, np.multiply.reduceat(probs["s"], starts), policy, goes_on)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("hole", [False, True])
@pytest.mark.parametrize("prefixes", ["s", "p"])
def test_expected_sums_under_a_third_sampler_are_exact(ends, hole, prefixes: str) -> None:
    world = a_world(ends, hole)
    found = sums(world.columns, Question("p", "q", "s", prefixes)) @ world.probability
    kl = world.over(prefixes, world.divergence("p", "q"))
    exactly = {
        "tokens": world.over("s", np.ones(4)),
        "weight": world.over(prefixes, np.ones(4)),
        "k1": kl,
        "k2": world.over(prefixes, world.divergence("p", "q", power=2)) / 2,
        "k3": kl,
        "q_over_s": 0.0,
        "log_p_over_s": -INF if hole else -world.over("s", world.divergence("s", "p")),
        "log_q_over_s": -INF if hole else -world.over("s", world.divergence("s", "q")),
    }
    for name, value in exactly.items():
        assert found[INDEX[name]] == pytest.approx(value, rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("ends", [False, True])
def test_expected_sums_where_p_sampled_are_exact(ends: bool) -> None:
    world = a_world(ends, hole=False)
    found = sums(world.columns, Question("s", "q")) @ world.probability
    kl = world.over("s", world.divergence("s", "q"))
    exactly = {"k1": kl, "k3": kl, "raw_k1": kl, "raw_k3": kl, "q_over_s": 0.0, "log_q_over_s": -kl}
    for name, value in exactly.items():
        assert found[INDEX[name]] == pytest.approx(value, rel=1e-12, abs=1e-12), name


def test_a_token_that_p_cannot_take_adds_q_over_s_to_k3_alone() -> None:
    columns = pack({"p": [[-INF, -1.0]], "q": [[-2.0, -1.0]], "s": [[-0.5, -1.0]]})
    for prefixes in ("s", "p"):
        found = rows(columns, Question("p", "q", "s", prefixes))
        expected = {"k1": 0, "k2": 0, "k3": exp(-1.5), "weight": 0, "q_over_s": exp(-1.5) - 1}
        expected |= {"raw_k1": 0, "raw_k3": 0, "log_p_over_s": -INF, "log_q_over_s": -1.5}
        for name, value in expected.items():
            assert found[INDEX[name], 0] == pytest.approx(value, rel=1e-15), name
        # What stands behind it: the sampler's prefix, or a prefix that p cannot have.
        assert found[INDEX["weight"], 1] == (prefixes == "s")


def test_exact_columns_are_read_by_their_question_and_inside_the_mask() -> None:
    columns = pack(
        {"p": [[-1.0, NAN, -1.0]], "q": [[-1.0, -1.0, -1.0]]},
        mask=[[1, 1, 0]],
        exact={"KL(p||q)": [[0.25, 0.5, 1.0]]},
    )
    found = rows(columns, Question("p", "q"))
    assert found[INDEX["exact"]].tolist() == [0.25, 0.5, 0]
    assert found[INDEX["exact_tokens"]].tolist() == [1, 1, 0]
    other = rows(replace(columns, exact={"KL(q||p)": columns.mask}), Question("p", "q"))
    assert not other[INDEX["exact_tokens"]].any()
