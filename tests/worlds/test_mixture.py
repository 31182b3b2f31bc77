from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from kullback.formulas.shape import shape
from kullback.question import Question
from kullback.worlds.mixture import Mixture
from kullback.worlds.tables import drifted, ending, kept_top_k, zipf


def tiny(**changes: object) -> Mixture:
    """2 kinds of 2 contexts, 3 tokens, the first of which ends: 2 · (2 · 3)³ paths at most."""
    rng = np.random.default_rng(0)
    base = {"contexts": 4, "alphabet": 3, "exponents": (0.1, 1.0)}
    tables = {role: zipf(rng, **base) for role in ("rollout", "current", "reference")}
    return replace(Mixture(tables, prompts=8, max_length=3, ends=True, kinds=2), **changes)


def wide(**changes: object) -> Mixture:
    rng = np.random.default_rng(1)
    rollout = zipf(rng, contexts=32, alphabet=300)
    tables = {"rollout": rollout, "reference": drifted(rng, rollout, 0.3)}
    tables = {role: ending(table, 0.03) for role, table in tables.items()}
    return replace(Mixture(tables, prompts=50, max_length=60, ends=True), **changes)


def paths(world: Mixture, by: str) -> list[tuple[float, int, list[int]]]:
    """Every path that a role can take: its probability, its kind and its contexts."""
    found = []
    each = world.shape[0] // world.kinds

    def grow(probability: float, kind: int, contexts: list[int]) -> None:
        for context in range(kind * each, (kind + 1) * each):
            probs = np.exp(world.log_probs[by][context])
            over = len(contexts) + 1 == world.max_length
            ends = 1.0 if over else probs[0] if world.ends else 0.0
            here = probability / each
            if ends:
                found.append((here * ends, kind, [*contexts, context]))
            if ends < 1:
                grow(here * (1 - ends), kind, [*contexts, context])

    for kind in range(world.kinds):
        grow(1 / world.kinds, kind, [])
    return found


@pytest.mark.parametrize("changes", [{}, {"ends": False}, {"kinds": 1}, {"max_length": 1}])
@pytest.mark.parametrize("prefixes", ["rollout", "current"])
def test_answers_by_enumeration_of_all_paths(changes, prefixes):
    world = tiny(**changes)
    kl_of = (np.exp(p := world.log_probs["current"]) * (p - world.log_probs["reference"])).sum(1)
    probability, sums, lengths = np.array(
        [(w, kl_of[contexts].sum(), len(contexts)) for w, _, contexts in paths(world, prefixes)]
    ).T
    assert probability.sum() == pytest.approx(1.0, rel=1e-12)
    expected = {
        "sequence_sum": probability @ sums,
        "token_mean": (probability @ sums) / (probability @ lengths),
        "sequence_mean": probability @ (sums / lengths),
    }
    for level, answer in expected.items():
        question = Question("current", "reference", "rollout", prefixes, level)
        assert world.exact(question) == pytest.approx(answer, rel=1e-12)


def test_expected_lengths_by_enumeration():
    world = tiny()
    by_kind = np.zeros(2)
    for probability, kind, contexts in paths(world, "rollout"):
        by_kind[kind] += 2 * probability * len(contexts)
    assert world.expected_lengths("rollout") == pytest.approx(by_kind, rel=1e-12)


def test_joint_is_a_distribution_whose_kl_is_the_answer_per_token():
    world = tiny()
    assert world.joint("rollout").sum() == pytest.approx(1.0, rel=1e-12)
    pair = shape(world.joint("rollout"), world.joint("reference"))
    assert pair.kl_pq == pytest.approx(world.exact("KL(rollout||reference)"), rel=1e-12)
    other_way = Question("reference", "rollout", sampler="rollout")
    assert pair.kl_qp == pytest.approx(world.exact(other_way), rel=1e-12)


def test_moments_of_a_token_by_enumeration():
    world = tiny(ends=False, max_length=1)
    p, q = world.log_probs["rollout"], world.log_probs["reference"]
    pair = shape(world.joint("rollout"), world.joint("reference"))
    outcomes = itertools.product(range(4), range(3))
    values = [(np.exp(p[c, x]) / 4, p[c, x] - q[c, x]) for c, x in outcomes]
    mean = sum(w * k1 for w, k1 in values)
    assert pair.variance_k1 == pytest.approx(sum(w * (k1 - mean) ** 2 for w, k1 in values))
    assert pair.chi2_qp == pytest.approx(sum(w * np.expm1(-k1) ** 2 for w, k1 in values))


def test_draws_have_the_frequencies_of_the_tables():
    world = tiny(prompts=20_000, sequences_per_prompt=1, ends=False)
    draw = world.draw(np.random.default_rng(2), world.log_probs["rollout"])
    counts = np.bincount(draw.contexts * 3 + draw.tokens, minlength=12).reshape(4, 3)
    expected = counts.sum(axis=1, keepdims=True) * np.exp(world.log_probs["rollout"])
    z = (counts - expected) / np.sqrt(expected * (1 - np.exp(world.log_probs["rollout"])))
    assert np.abs(z).max() < 5


def test_sums_over_a_sample_agree_with_the_exact_moments():
    world = wide()
    columns = world.sample(np.random.default_rng(3), exact=True)
    log_p, log_q = columns.log_probs["rollout"], columns.log_probs["reference"]
    k1, surprise = log_p - log_q, -log_p - columns.entropy["rollout"]
    answer = world.exact(Question("rollout", "reference"))
    pair = shape(world.joint("rollout"), world.joint("reference"))
    table = world.log_probs["rollout"]
    information = (np.exp(table) * table**2).sum(axis=1) - world.entropy["rollout"] ** 2
    between = world.kl("rollout", "reference").var()
    # Sums stopped at the end of a sequence: Wald's second identity gives the variance.
    tokens = world.expected_lengths("rollout")[0] * len(columns.lengths)
    sums = {
        "k1": (k1 - answer, pair.variance_k1),
        "k3": (np.expm1(-k1) + k1 - answer, pair.variance_k3),
        "r - 1": (np.expm1(-k1), pair.chi2_qp),
        "k1 - exact": (k1 - columns.exact["KL(rollout||reference)"], pair.variance_k1 - between),
        "surprise": (surprise, information.mean()),
    }
    z = {name: terms.sum() / np.sqrt(variance * tokens) for name, (terms, variance) in sums.items()}
    assert max(abs(score) for score in z.values()) < 5


def test_kinds_differ_as_prompts_do():
    rng = np.random.default_rng(4)
    rollout = zipf(rng, contexts=40, alphabet=200)
    size = np.repeat(np.geomspace(0.05, 1.0, 4), 10)[:, None]
    world = Mixture(
        {"rollout": rollout, "reference": drifted(rng, rollout, size)},
        prompts=400,
        sequences_per_prompt=2,
        max_length=10,
        kinds=4,
    )
    by_kind = world.kl("rollout", "reference").reshape(4, 10).mean(axis=1)
    pair = shape(world.joint("rollout"), world.joint("reference"))
    within = pair.variance_k1 - by_kind.var()
    columns = world.sample(rng)
    k1 = columns.log_probs["rollout"] - columns.log_probs["reference"]
    error = np.sqrt((by_kind.var() + within / 20) / 400)
    assert abs(k1.mean() - world.exact(Question("rollout", "reference"))) < 5 * error
    assert len(np.unique(columns.clusters)) == 400
    assert columns.cluster_kind == "prompt"


def test_columns_look_up_the_tables():
    world = wide()
    draw = world.draw(np.random.default_rng(5), world.log_probs["rollout"])
    columns = world.logged(draw, exact=True, top_k=7)
    at = (draw.contexts, draw.tokens)
    for role, table in world.log_probs.items():
        assert columns.log_probs[role].tolist() == table[at].tolist()
        entropy = -(np.exp(table) * table).sum(axis=1)[draw.contexts]
        assert columns.entropy[role] == pytest.approx(entropy, rel=1e-12)
        heads = -np.sort(-table, axis=1)[:, :7]
        assert columns.top_k[role].log_probs.tolist() == heads[draw.contexts].tolist()
        hit = columns.top_k[role].ids == draw.tokens[:, None]
        assert (columns.top_k[role].log_probs[hit] == columns.log_probs[role][hit.any(1)]).all()
    p, q = world.log_probs["reference"], world.log_probs["rollout"]
    kl = (np.exp(p) * (p - q)).sum(axis=1)[draw.contexts]
    assert columns.exact["KL(reference||rollout)"] == pytest.approx(kl, rel=1e-12, abs=1e-12)


def test_the_first_token_0_ends_a_sequence():
    world = wide()
    columns = world.sample(np.random.default_rng(6))
    last = columns.ends - 1
    ended = np.asarray(columns.tokens)[last] == 0
    assert (columns.lengths[~ended] == world.max_length).all()
    assert (np.asarray(columns.tokens) == 0).sum() == ended.sum()
    lengths = np.arange(1, 61)
    law = np.where(lengths < 60, 0.97 ** (lengths - 1) * 0.03, 0.97**59)
    mean = law @ lengths
    error = np.sqrt(law @ (lengths - mean) ** 2 / len(columns.lengths))
    assert abs(columns.lengths.mean() - mean) < 5 * error
    assert world.expected_lengths("rollout") == pytest.approx([mean])


def test_bytes_spell_the_text_and_the_end_has_none():
    world = wide()
    columns = world.sample(np.random.default_rng(7)).take(np.arange(20))
    pieces, texts = list(columns.token_bytes or ()), [text or "" for text in columns.text or ()]
    assert [piece is None for piece in pieces] == (np.asarray(columns.tokens) == 0).tolist()
    for end, length, text in zip(columns.ends, columns.lengths, texts, strict=True):
        assert b"".join(piece or b"" for piece in pieces[end - length : end]) == text.encode()
    assert not "".join(texts).isascii()
    assert len(set(world.vocabulary.tolist())) == 301


def test_a_table_that_forbids_tokens_draws_none_of_them():
    world = wide()
    kept = kept_top_k(world.log_probs["rollout"], 3)
    draw = world.draw(np.random.default_rng(8), kept)
    assert np.isfinite(kept[draw.contexts, draw.tokens]).all()


def test_contexts_that_cannot_be_split_are_refused():
    with pytest.raises(ValueError, match="4 contexts cannot be split evenly among 3 kinds"):
        tiny(kinds=3)
